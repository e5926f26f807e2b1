// Tools for daily life: travel, health, house, garden, news. Their wordings are in ../bank/tool-asks.txt and
// ../bank/tool-asks-free.txt.

import { personName, placeName } from "./made-up.ts";
import { among, date, from, hour, kindOfCar, size, someLetters, spoken, to, tool } from "./tool-parameters.ts";
import { choice, city, int, room, str, type ToolKind } from "./tool-parts.ts";

export const townTools: readonly ToolKind[] = [
  tool(
    "convert_units unit_converter convert",
    "Convert a length into another unit",
    {
      value: int("value amount number", "the number", 1, 900),
      from: among("from from_unit source_unit", "unit to convert from", "miles, feet, yards, inches"),
      to: among("to to_unit target_unit", "unit to convert to", "kilometers, meters, centimeters"),
    },
    "12.5|340|7",
    "$value $from are $r $to.",
  ),
  tool(
    "book_hotel reserve_room hotel_booking",
    "Book a hotel room",
    {
      city,
      nights: int("nights num_nights stay", "number of nights", 1, 14),
      guests: int("guests people adults", "number of guests", 1, 6),
    },
    "booked|room 12",
    "Your hotel in $city for $nights nights is booked ($r).",
  ),
  tool(
    "rent_car car_rental hire_car",
    "Rent a car",
    { city, car: kindOfCar, days: int("days num_days duration", "number of days", 1, 30) },
    "reserved",
    "The $car car in $city is reserved for $days days.",
  ),
  tool(
    "find_train train_search next_train",
    "Find a train",
    { from, to, time: hour },
    "platform 4|platform 9|no seats left",
    "The train from $from to $to: $r.",
  ),
  tool(
    "order_taxi call_taxi book_ride get_cab",
    "Order a taxi",
    {
      place: among(
        "pickup from address",
        "where to pick up",
        "the office, 14 Mill Street, the main station, Hotel Aurora, the north gate, 220 Garden Avenue, the airport",
      ),
      time: hour,
    },
    "taxi is coming",
    "A taxi comes to $place at $time.",
  ),
  tool(
    "track_flight flight_status flight_info",
    "Get the status of a flight",
    {
      flight: str(
        "flight flight_number code",
        "code of the flight",
        (rng) => `${someLetters(rng, 2)}${rng.int(100, 999)}`,
      ),
    },
    "on time|late|in the air",
    "Flight $flight is $r.",
  ),
  tool(
    "cancel_booking cancel_reservation drop_booking",
    "Cancel a booking",
    {
      code: str(
        "code booking_code reference",
        "code of the booking",
        (rng) => `${someLetters(rng, 2)}${rng.int(10, 99)}${someLetters(rng, 1)}`,
      ),
    },
    "canceled",
    "The booking $code is canceled.",
  ),
  tool(
    "get_distance distance how_far",
    "Get the distance between two places",
    { from, to },
    "40 kilometers|310 kilometers|95 kilometers",
    "From $from to $to it is $r.",
  ),
  tool(
    "get_air_quality air_quality pollution",
    "Get the quality of the air in a city",
    { city },
    "good|fair|poor",
    "The air in $city is $r.",
  ),
  tool(
    "find_place nearby_places search_place",
    "Find a place of a kind in a city",
    {
      kind: spoken(choice("kind type category", "kind of place", ["pharmacy", "bank", "hospital", "hotel", "museum"]), {
        pharmacy: ["pharmacy", "drugstore"],
        bank: ["bank"],
        hospital: ["hospital", "clinic"],
        hotel: ["hotel"],
        museum: ["museum"],
      }),
      city,
    },
    "one in Main Street|two found",
    "I looked for a $kind in $city: $r.",
  ),
  tool(
    "book_appointment make_appointment doctor_visit",
    "Make an appointment with a doctor",
    { doctor: str("doctor with name", "name of the doctor", (rng) => `Dr. ${personName(rng)}`), date },
    "confirmed",
    "You see $doctor on this date: $date.",
  ),
  tool(
    "log_workout add_workout track_exercise",
    "Write down a workout",
    {
      sport: among(
        "activity exercise type",
        "what was done",
        "running, swimming, yoga, cycling, rowing, tennis, weight lifting, rope skipping",
      ),
      minutes: int("minutes duration length", "minutes of sport", 5, 150),
    },
    "logged",
    "I noted $minutes minutes of $sport.",
  ),
  tool(
    "log_meal add_meal track_food",
    "Write down a meal",
    {
      meal: among(
        "meal food dish",
        "what was eaten",
        "chicken soup, fried rice, a cheese sandwich, oatmeal, bean salad, two pancakes, fish and chips",
      ),
      calories: int("calories kcal energy", "calories", 80, 1200),
    },
    "saved",
    "I noted $meal with $calories calories.",
  ),
  tool(
    "get_recipe find_recipe recipe_search",
    "Find a recipe for a dish",
    {
      dish: among(
        "dish recipe name",
        "the dish",
        "tomato soup, lemon cake, mushroom risotto, banana bread, lentil stew, onion tart, rice pudding, fish tacos",
      ),
    },
    "6 steps|3 recipes found",
    "I have a recipe for $dish: $r.",
  ),
  tool(
    "order_pizza pizza_order get_pizza",
    "Order a pizza",
    {
      size,
      topping: among(
        "topping flavor kind",
        "what is on it",
        "mushrooms, ham, tuna, spinach, olives, extra cheese, peppers and onions",
      ),
    },
    "ordered",
    "A $size pizza with $topping is ordered.",
  ),
  tool(
    "lock_door close_lock secure_door",
    "Lock a door",
    {
      door: among(
        "door which entrance",
        "the door",
        "front door, back door, garage door, cellar door, garden gate, side door",
      ),
    },
    "locked",
    "The $door is locked.",
  ),
  tool(
    "unlock_door open_lock open_door",
    "Unlock a door",
    {
      door: among(
        "door which entrance",
        "the door",
        "front door, back door, garage door, cellar door, garden gate, side door",
      ),
    },
    "unlocked",
    "The $door is unlocked.",
  ),
  tool(
    "start_vacuum clean_room vacuum",
    "Send the cleaning robot to a room",
    { room },
    "started",
    "The robot cleans the $room.",
  ),
  tool(
    "brew_coffee make_coffee coffee_machine",
    "Make a coffee",
    { size, drink: choice("drink kind type", "kind of coffee", ["espresso", "latte", "cappuccino", "americano"]) },
    "brewing",
    "Your $size $drink is on the way.",
  ),
  tool(
    "water_plants irrigate sprinkler",
    "Water a part of the garden",
    {
      zone: among(
        "zone area part",
        "part of the garden",
        "roses, front lawn, herb bed, tomatoes, hedge, greenhouse, back yard",
      ),
      minutes: int("minutes duration time", "how many minutes", 2, 60),
    },
    "watering",
    "I water this for $minutes minutes: $zone.",
  ),
  tool(
    "feed_pet pet_feeder give_food",
    "Give food to a pet",
    {
      pet: str("pet animal name", "name of the pet", personName),
      grams: int("grams amount portion", "grams of food", 10, 400),
    },
    "done",
    "$pet gets $grams grams of food.",
  ),
  tool(
    "set_brightness brightness screen_light",
    "Set how bright the screen is",
    { level: int("level brightness percent", "from 0 to 100", 0, 100) },
    "ok",
    "The brightness is $level percent now.",
  ),
  tool(
    "check_battery battery_level battery",
    "Check the battery of a device",
    {
      device: among(
        "device name item",
        "the device",
        "phone, tablet, car, headphones, camera, electric bike, door sensor, smart watch",
      ),
    },
    "80 percent|15 percent|full",
    "The battery of the $device: $r.",
  ),
  tool(
    "play_podcast podcast_player start_podcast",
    "Play an episode of a podcast",
    {
      show: among(
        "show podcast title",
        "the podcast",
        "Morning Minds, The Slow Kitchen, Star Talk Weekly, Deep Forest, Tiny History, Bread and Butter",
      ),
      episode: int("episode number episode_number", "number of the episode", 1, 300),
    },
    "playing",
    "Now playing episode $episode of $show.",
  ),
  tool(
    "get_news news_search headlines",
    "Get news about a topic",
    {
      topic: among(
        "topic subject about query",
        "the topic",
        "space travel, the election, football, electric cars, health, the stock market, climate, new phones",
      ),
    },
    "4 stories|one new story",
    "News about $topic: $r.",
  ),
  tool(
    "get_score match_result game_score",
    "Get the result of a team",
    {
      team: str("team club side", "the team", (rng) =>
        rng.pick([
          `${placeName(rng)} United`,
          `Red ${rng.pick(["Lions", "Hawks", "Sox"])}`,
          `${placeName(rng)} Bears`,
          `FC ${placeName(rng)}`,
        ]),
      ),
    },
    "2 to 1|0 to 0|they lost",
    "$team: $r.",
  ),
  tool(
    "buy_ticket get_tickets book_show",
    "Buy tickets for a show",
    {
      show: among(
        "show event concert",
        "the show",
        "Swan Lake, the jazz night, The Magic Flute, the comedy evening, the cup final, Moonlight Circus",
      ),
      seats: int("seats tickets quantity", "how many tickets", 1, 9),
    },
    "bought",
    "I bought $seats tickets for $show.",
  ),
];
