/** The days of the fortnight, in order. */
import { Effect } from "effect"
import type { Day } from "./Day.ts"
import { firstStart, letGroupIn, letIn, pairPhone } from "./Home.ts"
import {
  asks,
  beginsSession,
  crashes,
  losesAgent,
  losesChoird,
  nothing,
  onceItIsBack,
  restarts,
  restartsWhileItIsDown,
  sendsFile,
  sendsPhoto,
  taps,
  tells,
  whenItGoesDown,
  whileItFailsForSeconds,
  whileItHangs,
  whileItRefusesTheKey,
  writes,
  writesInGroup
} from "./steps.ts"

const GARDEN = "When does https://example.org/garden open?"
const OPENS = "opens at nine"
const COUNT = "Count the words of the packing list in the background, please"
const STARTED = "in the background."
const SIX = "six words"
const AGAIN = "Count the words once more in the background, please"
/** The last words on a job that waits. */
const WAITS = "continues by itself"

const FIRST_WEEK: ReadonlyArray<Day> = [
  {
    date: "2027-03-01",
    name: "Monday",
    steps: [
      {
        at: "08:00",
        title: "Ada sets Choir up with `npm start`, adds her bot, and sends it the code that she was shown.",
        act: (home) => Effect.andThen(firstStart(home), pairPhone(home)),
        until: "You are in"
      },
      writes("Ada", "08:10", "good morning", "Good morning"),
      tells("08:20", "user.sister"),
      tells("08:30", "user.coffee"),
      tells("08:40", "user.dentist"),
      sendsPhoto("12:00"),
      writes("Ada", "12:10", "Remind me at 13:00 to water the tomatoes", "Reminder 1"),
      nothing("13:00", "Reminder 1: water the tomatoes"),
      writes("Ada", "18:00", GARDEN, OPENS),
      writes("Ada", "22:00", "good night", "Good night"),
      writes("Ada", "22:10", "/remind tomorrow 7:30 take the bins out", "Reminder 2")
    ]
  },
  {
    date: "2027-03-02",
    name: "Tuesday",
    steps: [
      nothing("07:30", "Reminder 2: take the bins out"),
      restarts("08:00", "good morning", "Good morning"),
      asks("08:10", "user.sister"),
      sendsFile("12:00", "packing.txt", "tent\nstove\nmap of the lakes\n", "packing list"),
      asks("12:10", "user.coffee"),
      writes("Ada", "17:00", COUNT, STARTED),
      writes("Ada", "17:10", "Meanwhile note that the map is missing", SIX)
    ]
  },
  {
    date: "2027-03-03",
    name: "Wednesday",
    steps: [
      writes("Ada", "08:00", "/new", "new conversation"),
      tells("08:10", "user.bicycle"),
      tells("08:20", "user.shoes"),
      sendsPhoto("12:00"),
      tells("12:10", "user.allergy"),
      asks("12:20", "user.dentist"),
      {
        at: "18:00",
        title: "Ada lets Bob in, who sends the code from his phone.",
        act: (home) => letIn(home, "Bob", "choirctl dm pair bob --gateway telegram"),
        until: "You are in"
      },
      writes("Bob", "18:10", "good evening", "Good evening"),
      writes("Bob", "18:20", "/memory", "◆")
    ]
  },
  {
    date: "2027-03-04",
    name: "Thursday",
    steps: [
      writes("Ada", "08:00", "Write into my notes: Who calls the landlord?", "in your notes"),
      writes("Ada", "08:10", "Please learn to list the open questions of my notes", "have proposed"),
      writes("Bob", "08:20", "/approve 1", "◆"),
      taps("Ada", "08:30", "Approve", "Done"),
      writes("Bob", "08:40", "thank you", "welcome"),
      writes("Ada", "08:50", "Which questions of my notes are open?", "One: who calls")
    ]
  },
  {
    date: "2027-03-05",
    name: "Friday",
    steps: [
      beginsSession("08:00", "good morning", "Good morning"),
      tells("08:10", "user.landlord"),
      tells("08:20", "user.train"),
      tells("08:30", "user.wifi"),
      writes("Ada", "12:00", GARDEN, OPENS),
      tells("12:10", "user.birthday"),
      asks("12:20", "user.bicycle")
    ]
  },
  {
    date: "2027-03-06",
    name: "Saturday",
    steps: [
      {
        at: "10:00",
        title: "Ada makes an agent for the group, adds the bot there, and writes what she was shown.",
        act: letGroupIn,
        until: "in, as trip"
      },
      writesInGroup("Ada", "10:10", "@bot good morning", "Good morning"),
      writesInGroup("Carl", "10:20", "@bot What is the code of my bicycle lock?", "I do not know"),
      writesInGroup("Carl", "10:30", "/stop@bot", "/stop"),
      writes("Ada", "10:40", "What did Carl ask?", "do not know"),
      writes("Ada", "10:50", "good morning", "Good morning")
    ]
  },
  {
    date: "2027-03-07",
    name: "Sunday",
    steps: [
      beginsSession("10:00", "good morning", "Good morning"),
      tells("10:10", "user.tent"),
      tells("10:20", "user.paint"),
      tells("10:30", "user.plumber"),
      tells("10:40", "user.lake"),
      losesAgent("18:00", "thank you", "welcome"),
      crashes("18:10", 2, "have stopped working"),
      writes("Ada", "18:20", "/start choir", "choir is running"),
      writes("Ada", "18:30", "good evening", "Good evening"),
      losesChoird("22:00", "good night", "Good night")
    ]
  }
]

const SECOND_WEEK: ReadonlyArray<Day> = [
  {
    date: "2027-03-08",
    name: "The second Monday",
    steps: [
      whileItRefusesTheKey(writes("Ada", "08:00", "good morning", "could not answer")),
      onceItIsBack("The provider takes the key again.", writes("Ada", "08:10", "good morning", "Good morning")),
      sendsPhoto("12:00"),
      asks("12:10", "user.shoes"),
      whenItGoesDown(writes("Ada", "17:00", AGAIN, STARTED)),
      onceItIsBack("Ten minutes later it is back.", nothing("17:10", SIX)),
      whileItFailsForSeconds(writes("Ada", "22:00", "good night", "Good night"))
    ]
  },
  {
    date: "2027-03-09",
    name: "The second Tuesday",
    steps: [
      restarts("08:00", "good morning", "Good morning"),
      asks("08:10", "user.birthday"),
      writes("Ada", "12:00", GARDEN, OPENS),
      asks("12:10", "user.allergy"),
      whenItGoesDown(writes("Ada", "14:00", AGAIN, STARTED)),
      onceItIsBack("Two hours later it is back.", nothing("16:00", SIX)),
      whileItHangs(writes("Ada", "22:00", "good night", "👀"))
    ]
  },
  {
    date: "2027-03-11",
    name: "The second Thursday",
    steps: [
      onceItIsBack(
        "Ada restarts the computer, and the provider answers again.",
        restarts("08:00", undefined, "Good night")
      ),
      writes("Ada", "08:10", "good morning", "Good morning"),
      beginsSession("08:20", "thank you", "welcome"),
      sendsPhoto("12:00"),
      asks("12:10", "user.landlord"),
      asks("12:20", "user.train"),
      asks("12:30", "user.wifi"),
      whenItGoesDown(writes("Ada", "22:00", AGAIN, STARTED))
    ]
  },
  {
    date: "2027-03-12",
    name: "The second Friday",
    steps: [
      restartsWhileItIsDown("07:00", WAITS, SIX),
      sendsFile("08:00", "packing.txt", "tent\nstove\nmap of the lakes\n", "packing list"),
      asks("08:10", "user.tent"),
      asks("08:20", "user.paint"),
      asks("08:30", "user.plumber"),
      asks("08:40", "user.lake"),
      writes("Ada", "22:00", "good night", "Good night")
    ]
  }
]

/** The days before the last, on which nobody writes. */
export const IDLE_DATES = Array.from({ length: 9 }, (_, day) => `2027-03-${13 + day}`)

/** Nobody has written for ten days. */
const IDLE: Day = {
  date: "2027-03-22",
  name: "Ten days later",
  steps: [restarts("08:00", "good morning", "Good morning")]
}

export const DAYS: ReadonlyArray<Day> = [...FIRST_WEEK, ...SECOND_WEEK, IDLE]

export const PAGES: Readonly<Record<string, string>> = {
  "/garden":
    "<title>The garden</title><h1>The garden</h1><p>The garden opens at nine in the morning and closes at six in the evening, every day of the week.</p>"
}
