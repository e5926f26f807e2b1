// Tools for errands: bookings, calendar, shopping, directions, films, parcels, dice, notes, apps.

import { names } from "./bank.ts";
import { placeName } from "./made-up.ts";
import { choice, city, clock, day, int, item, str, type ToolKind, title } from "./tool-parts.ts";

export const errandTools: readonly ToolKind[] = [
  {
    names: ["book_table", "reserve_table", "restaurant_booking", "make_reservation"],
    about: "Book a table at a restaurant",
    parameters: {
      people: int("people guests persons seats", "number of people", 1, 12),
      time: str("time at hour", "the time", clock),
    },
    asks: [
      "{Book|Reserve} a table for $people {people|persons} at $time{.|}",
      "{We are $people|There are $people of us}. {Book|Reserve} a table at $time{.|}",
      "{I need|I want} a table for $people at $time{.|}",
    ],
    result: () => "booked",
    returns: "booked",
    reply: "A table for $people at $time is booked.",
  },
  {
    names: ["book_flight", "reserve_flight", "flight_booking", "find_flight"],
    about: "Book a flight",
    parameters: {
      from: str("from origin departure", "where the flight starts", placeName),
      to: str("to destination arrival", "where the flight ends", placeName),
      day,
    },
    asks: [
      "{Book|Find|Reserve} {a flight|me a flight} from $from to $to on $day{.|}",
      "I {want|need|would like} to fly from $from to $to on $day{.|}",
      "{Get me|I need} a {flight|plane ticket} on $day from $from to $to{.|}",
      "On $day I fly from $from to $to. {Book it|Please book it}.",
    ],
    result: () => "confirmed",
    returns: "confirmed",
    reply: "Your flight from $from to $to on $day is confirmed.",
  },
  {
    names: ["add_event", "calendar_add", "create_event", "schedule"],
    about: "Put an event into the calendar",
    parameters: {
      event: str("event title name", "what happens", (rng) =>
        rng.pick([
          "dentist",
          "team meeting",
          "lunch with Tom",
          "piano lesson",
          "football practice",
          "parents' evening",
          "haircut",
        ]),
      ),
      day,
    },
    asks: [
      "{Add|Put} $event {to|in|into} my calendar {on|for} $day{.|}",
      "{Schedule|Plan|Note} $event {on|for} $day{.|}",
      "I have $event on $day. {Put it in my calendar|Add it to my calendar}.",
    ],
    result: () => "added",
    returns: "added",
    reply: "I added $event on $day.",
  },
  {
    names: ["list_events", "get_calendar", "calendar", "show_schedule"],
    about: "Show the events of a day",
    parameters: { day },
    asks: [
      "What {do I have|is on my calendar|are my plans|is planned} {on|for} $day?",
      "{Show|Tell} me my {calendar|plans|events|schedule} {on|for} $day{.|}",
      "Am I {free|busy} on $day?",
    ],
    result: (rng) => rng.pick(["no events", "one event: lunch at noon", "two events: dentist, dinner"]),
    returns: "$r",
    reply: "On $day you have $r.",
  },
  {
    names: ["set_reminder", "remind", "create_reminder", "add_reminder"],
    about: "Remind the user of something",
    parameters: {
      task: str("text task what note", "what to remember", (rng) =>
        rng.pick([
          "water the plants",
          "call the doctor",
          "buy milk",
          "feed the cat",
          "pay the rent",
          "take out the trash",
          "close the window",
        ]),
      ),
      time: str("time at when", "the time", clock),
    },
    asks: [
      "Remind me {to $task at $time|at $time to $task}{.|}",
      "{Set|Create} a reminder {to $task at $time|at $time: $task}{.|}",
      "I must not forget to $task at $time{.|}",
    ],
    result: () => "saved",
    returns: "saved",
    reply: "I will remind you at $time to $task.",
  },
  {
    names: ["add_to_list", "shopping_list", "add_item", "shopping_add"],
    about: "Add an item to the shopping list",
    parameters: { item },
    asks: [
      "{Add|Put} $item {to|on} {my|the} {shopping |}list{.|}",
      "{We need|We are out of|I need to buy} $item{.|, put it on the list.}",
      "{Shopping list|Note}: $item",
    ],
    result: () => "ok",
    returns: "added",
    reply: "I added $item to your list.",
  },
  {
    names: ["order_product", "buy_item", "order", "place_order"],
    about: "Order a product",
    parameters: { item, quantity: int("quantity amount count number", "how many", 1, 30) },
    asks: [
      "{Order|Buy|Get me} $quantity $item{.|}",
      "I {want|would like|need} to {order|buy} $quantity $item{.|}",
      "Please order $item, $quantity of them.",
    ],
    result: (rng) => `order ${rng.int(100, 999)}`,
    returns: "$r",
    reply: "I ordered $quantity $item ($r).",
  },
  {
    names: ["get_price", "price_check", "product_price", "check_price"],
    about: "Get the price of a product",
    parameters: { item },
    asks: [
      "{How much is|What is the price of|What does} {the |}$item[ cost]?",
      "{Check|Look up|Find} the price of $item{.|}",
      "Price of $item?",
    ],
    result: (rng) => `${rng.int(1, 20)} euros`,
    returns: "$r",
    reply: "The price of $item is $r.",
  },
  {
    names: ["get_directions", "route", "navigate", "directions"],
    about: "Find the way to a place",
    parameters: {
      from: str("from start origin", "where to start", placeName),
      to: str("to end destination", "where to go", placeName),
    },
    asks: [
      "{How do I get|What is the way|Show me the way|Give me directions} from $from to $to{?|.|}",
      "{Navigate|Find a route|Route} from $from to $to{.|}",
      "I am in $from and want to go to $to{.|. Which way?}",
    ],
    result: (rng) => `${rng.int(20, 900)} kilometers`,
    returns: "$r",
    reply: "From $from to $to it is $r.",
  },
  {
    names: ["find_restaurant", "restaurants", "search_restaurant", "places_to_eat"],
    about: "Find a restaurant",
    parameters: {
      food: str("food cuisine kind type", "kind of food", (rng) =>
        rng.pick(["Italian", "Chinese", "Indian", "Greek", "Mexican", "Thai", "vegetarian"]),
      ),
      city,
    },
    asks: [
      "{Find|Look for|Search for} {a |an |}$food restaurant in $city{.|}",
      "Where can I eat $food food in $city?",
      "I want $food food in $city{.|}",
    ],
    result: (rng) => rng.pick(["Casa Luna", "The Red Door", "Green Garden"]),
    returns: "$r",
    reply: "You could go to $r in $city.",
  },
  {
    names: ["movie_info", "get_movie", "film_info", "find_movie"],
    about: "Get information about a movie",
    parameters: { title },
    asks: [
      "{Tell me|Find|Get} {about|something about|information about} the {movie|film} $title{.|}",
      '{What do you know about|Look up} the {movie|film} "$title"{?|.}',
      "Who made the film $title?",
    ],
    result: (rng) => `made in ${rng.int(1950, 2020)}`,
    returns: "$r",
    reply: "The movie $title was $r.",
  },
  {
    names: ["get_user", "find_customer", "user_info", "lookup_user"],
    about: "Look up a user by number",
    parameters: { id: int("id user_id number customer_id", "the number of the user", 1, 9999) },
    asks: [
      "{Show|Get|Find|Look up} {user|customer} {number |}$id{.|}",
      "{Who is|Tell me about} {user|customer} {number |}$id{?|.}",
    ],
    result: (rng) => rng.pick(names),
    returns: "$r",
    reply: "The user with number $id is $r.",
  },
  {
    names: ["track_package", "parcel_status", "track_order", "where_is_package"],
    about: "Find out where a package is",
    parameters: { number: int("number tracking_number id code", "the number of the package", 1000, 99999) },
    asks: [
      "Where is {my |the |}{package|parcel|order} {number |}$number?",
      "{Track|Follow|Check} {package|parcel|order} {number |}$number{.|}",
      "What is the status of {package|parcel|order} $number?",
    ],
    result: (rng) => rng.pick(["on the way", "delivered", "in the city", "at the post office"]),
    returns: "$r",
    reply: "Package $number is $r.",
  },
  {
    names: ["roll_dice", "dice", "roll", "throw_dice"],
    about: "Roll a dice with a number of sides",
    parameters: { sides: int("sides faces max", "number of sides", 4, 20) },
    asks: ["{Roll|Throw} a {dice|die} with $sides sides{.|}", "{Roll|Throw} a $sides sided {dice|die}{.|}"],
    result: (rng) => String(rng.int(1, 4)),
    returns: "$r",
    reply: "The dice shows $r.",
  },
  {
    names: ["random_number", "random", "pick_number"],
    about: "Give a random number up to a limit",
    parameters: { max: int("max limit upper to", "the largest number", 2, 1000) },
    asks: [
      "{Give me|Pick|Draw|Choose} a random number {up to|between 1 and|from 1 to} $max{.|}",
      "A random number up to $max, please.",
    ],
    result: () => "1",
    returns: "$r",
    reply: "The number is $r.",
  },
  {
    names: ["set_volume", "volume", "change_volume", "sound_level"],
    about: "Set the volume",
    parameters: { level: int("level volume value percent", "from 0 to 100", 0, 100) },
    asks: [
      "{Set|Turn|Change} the {volume|sound} to $level{.|}",
      "{Volume|Sound level} $level, please.",
      "Make it louder or quieter: volume $level.",
    ],
    result: () => "ok",
    returns: "ok",
    reply: "The volume is $level now.",
  },
  {
    names: ["create_note", "note", "save_note", "write_note"],
    about: "Save a note",
    parameters: {
      text: str("text note content", "the note", (rng) =>
        rng.pick([
          "the key is under the mat",
          "the code is on the fridge",
          "Anna likes tea",
          "buy a gift for Tom",
          "the shop closes at six",
          "the blue box is mine",
        ]),
      ),
    },
    asks: [
      "{Write down|Save|Note}{:| that|} $text{.|}",
      "{Make|Create} a note: $text{.|}",
      '{Take a note|Note}: "$text"',
    ],
    result: () => "saved",
    returns: "saved",
    reply: "I saved the note.",
  },
  {
    names: ["open_app", "start_app", "launch", "open_program"],
    about: "Open a program",
    parameters: {
      app: str("app name program", "the program", (rng) =>
        rng.pick(["camera", "calendar", "browser", "mail", "maps", "music", "notes", "calculator"]),
      ),
    },
    asks: ["{Open|Start|Launch} {the |}$app[ app]{.|}", "I {want|need} {the |}$app{.| now.}", "Show me the $app app."],
    result: () => "open",
    returns: "opened",
    reply: "The $app is open.",
  },
  {
    names: ["set_mode", "device_mode", "change_mode"],
    about: "Set the mode of a device",
    parameters: {
      device: str("device machine name", "the device", (rng) => rng.pick(["heater", "fan", "oven", "robot", "camera"])),
      mode: choice("mode setting", "the mode", ["eco", "fast", "quiet", "off"]),
    },
    asks: [
      "{Set|Put|Switch} the $device {to|in|into} $mode mode{.|}",
      "{Use|I want} $mode mode {for|on} the $device{.|}",
      "$device: $mode mode, please.",
    ],
    result: () => "ok",
    returns: "ok",
    reply: "The $device is in $mode mode.",
  },
];
