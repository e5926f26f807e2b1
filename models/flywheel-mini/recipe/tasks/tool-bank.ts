// The tools the model practises with: each with several names and parameter spellings, wordings of requests, and a
// result with the reply that uses it. Argument values come from the request, never from thin air.

import { membersOf, names } from "./bank.ts";
import { anyWord, personName, phrase, placeName } from "./made-up.ts";
import type { Rng } from "./rng.ts";

export interface ParameterKind {
  /** Possible spellings of the parameter; one is drawn per conversation. */
  keys: string[];
  type: "string" | "integer" | "number" | "boolean";
  about: string;
  make(rng: Rng): string | number;
  enum?: string[];
}

export interface ToolKind {
  names: string[];
  about: string;
  /** Variable name in the wordings -> parameter. */
  parameters: Record<string, ParameterKind>;
  asks: string[];
  /** What the tool gives back, and the reply made of it; $r is the random part, drawn by `result`. */
  result(rng: Rng): string;
  returns: string;
  reply: string;
}

const str = (keys: string, about: string, make: (rng: Rng) => string): ParameterKind => ({
  keys: keys.split(" "),
  type: "string",
  about,
  make,
});
const int = (keys: string, about: string, low: number, high: number): ParameterKind => ({
  keys: keys.split(" "),
  type: "integer",
  about,
  make: (rng) => rng.int(low, high),
});
const choice = (keys: string, about: string, options: string[]): ParameterKind => ({
  keys: keys.split(" "),
  type: "string",
  about,
  make: (rng) => rng.pick(options),
  enum: options,
});

const city = str("city location place town", "the city", placeName);
const person = str("name person contact to recipient", "the name of the person", personName);
const clock = (rng: Rng) => `${rng.int(1, 12)}:${rng.pick(["00", "15", "30", "45"])}`;
const room = str("room place area", "the room", (rng) =>
  rng.pick(["kitchen", "bedroom", "bathroom", "hall", "office", "garage", "living room"]),
);
const day = str("day date when", "the day", (rng) => rng.pick(membersOf("days of the week")));
const word = str("word term text", "the word", anyWord);
const item = str("item product article thing", "the item", (rng) =>
  rng.chance(0.4)
    ? anyWord(rng)
    : rng.pick([
        "milk",
        "bread",
        "eggs",
        "rice",
        "apples",
        "soap",
        "coffee",
        "cheese",
        "paper",
        "batteries",
        "tea",
        "flour",
      ]),
);
const title = str("title name movie", "the title", (rng) =>
  rng.pick(["The Quiet River", "Blue Morning", "Night Train", "Seven Stones", "The Glass Garden", "The Last Lamp"]),
);
const message = str("message text body content", "what to say", (rng) =>
  rng.chance(0.5)
    ? phrase(rng)
    : rng.pick([
        "I am late",
        "see you soon",
        "happy birthday",
        "the food is ready",
        "call me back",
        "thank you for the gift",
        "good luck",
        "I am at home",
      ]),
);
const topic = str("query q topic search", "what to look for", (rng) =>
  rng.chance(0.4)
    ? phrase(rng)
    : rng.pick([
        "cheap flights",
        "apple pie recipes",
        "history of Rome",
        "chess rules",
        "how to tie a tie",
        "weather on Mars",
        "used bicycles",
        "train times",
        "dog training",
        "healthy soups",
      ]),
);

export const toolKinds: readonly ToolKind[] = [
  {
    names: ["get_weather", "weather", "weather_lookup", "current_weather", "fetch_weather"],
    about: "Get the current weather in a city",
    parameters: { city },
    asks: [
      "{What is|What's|How is} the weather {like |}in $city[ today| right now| now]?",
      "{Is it {raining|sunny|cold|warm}|Do I need {an umbrella|a coat}} in $city[ today]?",
      "{Tell me|Check|Look up|Get} the weather {in|for} $city{.|}",
      "{Weather|Forecast} {in|for} $city{?|, please.}",
      "How warm is it in $city?",
      "I am going to $city. {What is the weather there|How is the weather there}?",
    ],
    result: (rng) => `${rng.pick(["sunny", "rainy", "cloudy", "windy", "snowy"])}, ${rng.int(-5, 35)} degrees`,
    returns: "$r",
    reply: "The weather in $city: $r.",
  },
  {
    names: ["get_forecast", "forecast", "weather_forecast"],
    about: "Get the weather forecast for a city and a number of days",
    parameters: { city, days: int("days n count num_days", "number of days", 1, 10) },
    asks: [
      "{Give|Show|Get} me the {weather |}forecast for $city for {the next |}$days days{.|}",
      "What will the weather be in $city over the next $days days?",
      "{I need|Show} a $days day forecast for $city{.|}",
    ],
    result: (rng) => rng.pick(["mostly sunny", "rain every day", "cold and windy", "warm and dry"]),
    returns: "$r",
    reply: "The forecast for $city for $days days: $r.",
  },
  {
    names: ["get_time", "current_time", "time_in", "clock", "local_time"],
    about: "Get the current time in a city",
    parameters: { city },
    asks: [
      "What time is it in $city[ now| right now]?",
      "{Tell me|Check|Get|Give me} the {time|current time|local time} in $city{.|}",
      "{Time|Local time} in $city?",
      "What is the {local |current |}time in $city?",
      "How late is it in $city?",
      "{Do you know|Can you tell me} what time it is in $city?",
    ],
    result: clock,
    returns: "$r",
    reply: "It is $r in $city.",
  },
  {
    names: ["add", "add_numbers", "sum", "calculator_add", "plus"],
    about: "Add two numbers",
    parameters: { a: int("a x first", "first number", 1, 9999), b: int("b y second", "second number", 1, 9999) },
    asks: [
      "{What is|Calculate|Compute} $a {plus|+} $b{?|}",
      "{Add|Sum} $a and $b{.|}",
      "{Use the tool to add|Please add} $a and $b{.|}",
    ],
    result: () => "",
    returns: "$r",
    reply: "$a + $b = $r.",
  },
  {
    names: ["multiply", "multiply_numbers", "product", "times"],
    about: "Multiply two numbers",
    parameters: { a: int("a x first", "first number", 2, 999), b: int("b y second", "second number", 2, 999) },
    asks: ["{What is|Calculate|Compute} $a {times|*|x} $b{?|}", "Multiply $a {by|and} $b{.|}"],
    result: () => "",
    returns: "$r",
    reply: "$a * $b = $r.",
  },
  {
    names: ["set_alarm", "alarm", "create_alarm", "wake_me"],
    about: "Set an alarm",
    parameters: { time: str("time at hour", "the time", clock) },
    asks: [
      "{Set|Create|Make} an alarm {for|at} $time{.|}",
      "Wake me {up |}at $time{.|}",
      "{I need|I have} to get up at $time{.|, please help.}",
      "Alarm at $time, please.",
      "Please let the alarm ring at $time.",
    ],
    result: () => "ok",
    returns: "alarm set",
    reply: "The alarm is set for $time.",
  },
  {
    names: ["set_timer", "timer", "start_timer", "countdown"],
    about: "Start a timer",
    parameters: { minutes: int("minutes duration min", "minutes to wait", 1, 90) },
    asks: [
      "{Set|Start} a {timer|countdown} for $minutes minutes{.|}",
      "{Tell me when|Let me know when} $minutes minutes are over{.|}",
      "{Timer|Countdown}: $minutes minutes.",
      "Remind me in $minutes minutes.",
    ],
    result: () => "started",
    returns: "timer started",
    reply: "The timer runs for $minutes minutes.",
  },
  {
    names: ["send_message", "message", "send_text", "text_person", "sms"],
    about: "Send a message to a person",
    parameters: { person, message },
    asks: [
      '{Send|Write} {a message|a text} to $person{: $message| that says $message|: "$message"}{.|}',
      "{Tell|Text|Message} $person: $message{.|}",
      '{Tell|Text} $person "$message"{.|}',
      'Send "$message" to $person{.|}',
      "Let $person know: $message.",
    ],
    result: () => "sent",
    returns: "sent",
    reply: "I sent the message to $person.",
  },
  {
    names: ["send_email", "email", "mail"],
    about: "Send an email",
    parameters: {
      person,
      subject: str("subject title topic", "the subject", (rng) =>
        rng.pick(["meeting", "holiday", "invoice", "party", "homework", "new job", "dinner"]),
      ),
    },
    asks: [
      "{Send|Write} {an email|a mail} to $person {about|with the subject} $subject{.|}",
      "Email $person about $subject{.|}",
      "Mail $person, subject $subject{.|}",
    ],
    result: () => "sent",
    returns: "email sent",
    reply: "The email about $subject was sent to $person.",
  },
  {
    names: ["call_person", "phone_call", "call", "dial"],
    about: "Call a person on the phone",
    parameters: { person },
    asks: [
      "{Call|Phone|Ring} $person{.|}",
      "{I want to|I need to|Let me} {talk to|speak with|call} $person{.|}",
      "{Start|Make} a {call|phone call} {with|to} $person{.|}",
      "Please dial $person.",
    ],
    result: () => "calling",
    returns: "calling",
    reply: "I am calling $person.",
  },
  {
    names: ["turn_on_light", "light_on", "switch_on_light", "lights_on"],
    about: "Turn on the light in a room",
    parameters: { room },
    asks: [
      "{Turn|Switch} on the {light|lights|lamp} in the $room{.|}",
      "{Turn|Switch} the $room {light|lights} on{.|}",
      "{It is dark in|I can't see in} the $room{.|, please turn on the light.}",
      "Light in the $room, please.",
    ],
    result: () => "on",
    returns: "light on",
    reply: "The light in the $room is on.",
  },
  {
    names: ["turn_off_light", "light_off", "switch_off_light", "lights_off"],
    about: "Turn off the light in a room",
    parameters: { room },
    asks: [
      "{Turn|Switch} off the {light|lights|lamp} in the $room{.|}",
      "{Turn|Switch} the $room {light|lights} off{.|}",
      "No light in the $room, please.",
    ],
    result: () => "off",
    returns: "light off",
    reply: "The light in the $room is off.",
  },
  {
    names: ["set_temperature", "thermostat", "heating", "set_heating"],
    about: "Set the temperature of a room",
    parameters: { room, degrees: int("degrees temperature value", "degrees", 15, 28) },
    asks: [
      "{Set|Change} the {temperature|heating} in the $room to $degrees[ degrees]{.|}",
      "{Make|Heat} the $room {to |}$degrees degrees{.|}",
      "I want $degrees degrees in the $room{.|}",
    ],
    result: () => "ok",
    returns: "set",
    reply: "The $room is set to $degrees degrees.",
  },
  {
    names: ["play_music", "play", "music_player", "play_song"],
    about: "Play music by an artist or of a kind",
    parameters: {
      music: str("query music genre song", "what to play", (rng) =>
        rng.pick(["jazz", "rock", "classical music", "piano music", "folk songs", "pop", "opera", "children's songs"]),
      ),
    },
    asks: [
      "{Play|Put on|Start} {some |}$music{.|}",
      "I {want to hear|would like to listen to|feel like} $music{.|}",
      "{Can you play|Please play} $music{?|.}",
    ],
    result: () => "playing",
    returns: "playing",
    reply: "Now playing $music.",
  },
  {
    names: ["web_search", "search", "search_web", "lookup", "find_information"],
    about: "Search the web",
    parameters: { topic },
    asks: [
      "{Search|Look|Google} {the web |online |}for $topic{.|}",
      "{Find|Look up} {information about |something about |}$topic{.|}",
      "{Search|Web search}: $topic",
      "What can you find {online |on the web |}about $topic?",
    ],
    result: (rng) => rng.pick(["3 results found", "12 results found", "one good page found"]),
    returns: "$r",
    reply: "I searched for $topic: $r.",
  },
  {
    names: ["translate", "translate_word", "translator"],
    about: "Translate a word into another language",
    parameters: {
      word,
      language: str("language target lang to", "the language", (rng) =>
        rng.pick(["French", "German", "Spanish", "Italian", "Dutch", "Polish"]),
      ),
    },
    asks: [
      "{Translate|Please translate} {the word |}$word {to|into} $language{.|}",
      "{What is|How do you say} $word in $language?",
      "$word in $language, please.",
    ],
    result: (rng) => rng.pick(["bola", "renti", "kavo", "sulan", "mirto"]),
    returns: "$r",
    reply: "In $language, $word is $r.",
  },
  {
    names: ["define_word", "dictionary", "define", "word_meaning"],
    about: "Look up the meaning of a word",
    parameters: { word },
    asks: [
      "{Look up|Find} the {meaning|definition} of {the word |}$word{.|}",
      "{Define|Look up} {the word |}$word in the dictionary{.|}",
      "What does the dictionary say about $word?",
    ],
    result: (rng) => rng.pick(["a common noun", "a thing we know well", "a word from daily life"]),
    returns: "$r",
    reply: "The dictionary says about $word: $r.",
  },
  {
    names: ["get_stock_price", "stock_price", "share_price", "quote"],
    about: "Get the price of a stock",
    parameters: {
      company: str("company symbol ticker name", "the company", (rng) =>
        rng.pick(["Acme", "Borealis", "Corvex", "Delmar", "Nordia", "Zentra", "Halcyon"]),
      ),
    },
    asks: [
      "{What is|What's} the {stock |share |}price of $company?",
      "{How is|How much is} {the |a share of |}$company[ stock] {doing|worth}?",
      "{Get|Check|Look up} the {stock|share} price of $company{.|}",
    ],
    result: (rng) => `${rng.int(5, 900)} dollars`,
    returns: "$r",
    reply: "The price of $company is $r.",
  },
  {
    names: ["convert_currency", "currency", "exchange", "money_convert"],
    about: "Convert an amount of money",
    parameters: {
      amount: int("amount value sum", "the amount", 1, 2000),
      from: str("from source from_currency", "currency to convert from", (rng) =>
        rng.pick(["dollars", "euros", "pounds"]),
      ),
      to: str("to target to_currency", "currency to convert to", (rng) =>
        rng.pick(["yen", "francs", "pesos", "rupees"]),
      ),
    },
    asks: [
      "{Convert|Change|Exchange} $amount $from {to|into} $to{.|}",
      "{How much is|What is} $amount $from in $to?",
      "$amount $from in $to, please.",
    ],
    result: (rng) => String(rng.int(10, 90000)),
    returns: "$r",
    reply: "$amount $from are $r $to.",
  },
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
