// Tools for the desk: money, tickets, files, accounts, school, shop. Their wordings are in ../bank/tool-asks.txt and
// ../bank/tool-asks-free.txt.

import { anyWord } from "./made-up.ts";
import {
  among,
  amount,
  bookTitle,
  date,
  file,
  fileName,
  hour,
  months,
  priority,
  someLetters,
  someone,
  spoken,
  store,
  tool,
} from "./tool-parameters.ts";
import { choice, city, int, item, person, str, type ToolKind } from "./tool-parts.ts";

export const workTools: readonly ToolKind[] = [
  tool(
    "create_invoice make_invoice bill_customer",
    "Create an invoice for a customer",
    { customer: someone("customer client name", "the customer"), amount },
    "invoice saved|invoice ready",
    "The invoice for $customer over $amount is done.",
  ),
  tool(
    "transfer_money send_money bank_transfer pay_person",
    "Send money to a person",
    { person, amount },
    "done|transferred",
    "I sent $amount to $person.",
  ),
  tool(
    "check_balance account_balance get_balance",
    "Get the balance of a bank account",
    { account: choice("account account_type which", "which account", ["checking", "savings", "credit"]) },
    "120 euros|4300 euros|75 euros",
    "Your $account account holds $r.",
  ),
  tool(
    "record_expense add_expense log_expense",
    "Write down money that was spent",
    {
      amount,
      category: spoken(choice("category type kind", "what it was spent on", ["food", "travel", "rent", "clothes"]), {
        food: ["food", "groceries", "lunch"],
        travel: ["travel", "a train ticket", "a taxi ride"],
        rent: ["rent"],
        clothes: ["clothes", "shoes", "a new jacket"],
      }),
    },
    "saved",
    "I noted $amount for $category.",
  ),
  tool(
    "calculate_tip tip_calculator get_tip",
    "Work out the tip for a bill",
    {
      bill: int("bill amount total", "the bill", 5, 400),
      percent: int("percent tip_percent rate", "tip in percent", 5, 25),
    },
    "8 euros|12 euros|3 euros",
    "The tip of $percent percent on $bill: $r.",
  ),
  tool(
    "create_ticket open_ticket new_issue report_bug",
    "Open a ticket for a problem",
    {
      title: among(
        "title summary issue",
        "the problem in a few words",
        "printer is broken, login page is slow, no internet on floor 2, email does not load, screen stays black, app crashes on start",
      ),
      priority,
    },
    "ticket 12|ticket 406",
    "I opened $r: $title.",
  ),
  tool(
    "close_ticket resolve_ticket finish_ticket",
    "Close a ticket",
    { id: int("ticket_id id number", "number of the ticket", 1, 9999) },
    "closed",
    "Ticket $id is closed.",
  ),
  tool(
    "assign_task give_task delegate",
    "Give a task to a person",
    {
      task: among(
        "task job work",
        "the task",
        "check the numbers, write the report, update the website, clean the storage room, call the supplier, test the new version",
      ),
      person: someone("person assignee member", "who does it"),
    },
    "assigned",
    "$person has the task: $task.",
  ),
  tool(
    "add_contact save_contact new_contact",
    "Save a phone number",
    {
      person: someone("name full_name contact", "name of the contact"),
      phone: str(
        "phone number phone_number",
        "the phone number",
        (rng) => `${rng.pick(["555", "0171", "020", "+44"])} ${rng.int(100, 999)} ${rng.int(1000, 9999)}`,
      ),
    },
    "saved",
    "I saved the number of $person.",
  ),
  tool("delete_file remove_file erase_file", "Delete a file", { file }, "deleted", "The file $file is deleted."),
  tool(
    "rename_file change_file_name",
    "Give a file a new name",
    {
      old: str("old old_name file from", "the name now", fileName),
      fresh: str("new new_name to", "the new name", fileName),
    },
    "renamed",
    "$old is now called $fresh.",
  ),
  tool(
    "move_file put_file file_to_folder",
    "Move a file into a folder",
    {
      file,
      folder: among(
        "folder directory target",
        "the folder",
        "Archive, Photos, Taxes 2024, Work, Old Stuff, Holiday Pictures, Music, Shared Documents",
      ),
    },
    "moved",
    "I moved $file to $folder.",
  ),
  tool(
    "share_file send_file give_access",
    "Share a file with a person",
    { file, person: someone("person with user", "who gets it") },
    "shared",
    "I shared $file with $person.",
  ),
  tool(
    "create_user add_user new_account",
    "Create a user account",
    {
      user: str(
        "username user login",
        "the user name",
        (rng) => `${anyWord(rng)}${rng.pick(["", "_"])}${rng.int(1, 99)}`,
      ),
      role: spoken(choice("role rights type", "rights of the user", ["admin", "editor", "viewer"]), {
        admin: ["admin", "administrator"],
        editor: ["editor"],
        viewer: ["viewer", "read-only user"],
      }),
    },
    "created",
    "The account $user is ready.",
  ),
  tool(
    "query_table list_rows get_records",
    "Read rows of a table",
    {
      table: among(
        "table name source",
        "the table",
        "orders, customers, invoices, employees, products, visits, shipments",
      ),
      limit: int("limit count rows", "how many rows", 1, 500),
    },
    "done|rows loaded",
    "Here are $limit rows of $table.",
  ),
  tool(
    "post_update post_message announce",
    "Post a text to a channel",
    {
      text: among(
        "text message content",
        "what to post",
        "the server is down, lunch is here, release at three, we won the contract, meeting moved to room 5, happy birthday Lena",
      ),
      channel: among("channel room group", "the channel", "general, sales, random, dev-team, support, kitchen-news"),
    },
    "posted",
    "I posted it in $channel.",
  ),
  tool(
    "find_book search_book book_lookup",
    "Find a book in the library",
    { title: bookTitle, author: someone("author writer by", "who wrote it") },
    "on shelf 4|not there|two copies",
    "The book $title by $author: $r.",
  ),
  tool(
    "reserve_book hold_book borrow_book",
    "Reserve a book for some days",
    { title: bookTitle, days: int("days num_days length", "how many days", 2, 30) },
    "reserved",
    "$title is reserved for $days days.",
  ),
  tool(
    "enroll_student join_course sign_up",
    "Put a student into a course",
    {
      student: someone("student name pupil", "the student"),
      course: among(
        "course class subject",
        "the course",
        "Biology 101, pottery, advanced math, guitar for beginners, creative writing, first aid",
      ),
    },
    "enrolled",
    "$student is in the course $course.",
  ),
  tool(
    "record_grade save_grade add_grade",
    "Save the points of a student",
    {
      student: someone("student name pupil", "the student"),
      points: int("points score grade", "points reached", 0, 100),
    },
    "saved",
    "I saved $points points for $student.",
  ),
  tool(
    "check_stock in_stock stock_level",
    "See if a store has an item",
    { item, store },
    "9 left|sold out",
    "$item in $store: $r.",
  ),
  tool(
    "apply_coupon use_code redeem",
    "Use a discount code",
    {
      code: str(
        "code coupon coupon_code",
        "the code",
        (rng) => `${rng.pick(["SAVE", "SPRING", "HELLO", "VIP", someLetters(rng, 4)])}${rng.int(5, 99)}`,
      ),
    },
    "10 percent off|5 euros off",
    "The code $code gives you $r.",
  ),
  tool(
    "return_item start_return send_back",
    "Send back an order",
    {
      order: int("order order_id order_number", "number of the order", 100, 99999),
      reason: among(
        "reason why comment",
        "why it goes back",
        "too small, wrong color, broken, arrived late, not needed, bad smell, a missing part",
      ),
    },
    "return started",
    "The return of order $order is started.",
  ),
  tool(
    "generate_password new_password make_password",
    "Make a password",
    { length: int("length size characters", "how many characters", 6, 40) },
    "ready",
    "A password of $length characters is ready.",
  ),
  tool(
    "find_job job_search search_jobs",
    "Search for jobs",
    {
      job: among(
        "job title role query",
        "the job",
        "nurse, truck driver, web designer, baker, math teacher, night guard, sales assistant, tour guide",
      ),
      city,
    },
    "5 jobs|no jobs|2 jobs",
    "Work as a $job in $city: $r.",
  ),
  tool(
    "add_birthday save_birthday remember_birthday",
    "Save a birthday",
    {
      person: someone("name person who", "whose birthday it is"),
      date: str("date birthday day", "the date", (rng) => `${rng.pick(months)} ${rng.int(1, 28)}`),
    },
    "saved",
    "I will remember $person on $date.",
  ),
  tool(
    "schedule_meeting plan_meeting set_meeting",
    "Plan a meeting with a person",
    { person: someone("person with attendee", "who takes part"), date, time: hour },
    "planned",
    "The meeting with $person is planned: $date, $time.",
  ),
  tool(
    "donate give_donation make_donation",
    "Give money to a cause",
    {
      amount,
      cause: among(
        "cause charity to",
        "who gets the money",
        "the animal shelter, the Red Cross, the school library, Clean Oceans, the food bank, the village choir",
      ),
    },
    "thank you",
    "I gave $amount to $cause.",
  ),
];
