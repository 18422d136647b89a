/** The days of the fortnight, in order. */
import { Effect } from "effect"
import type { Day } from "./Day.ts"
import { firstStart, letIn, pairPhone } from "./Home.ts"
import { asks, beginsSession, restarts, sendsFile, sendsPhoto, taps, tells, writes } from "./steps.ts"

const GARDEN = "When does https://example.org/garden open?"
const OPENS = "opens at nine"

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
      writes("Ada", "18:00", GARDEN, OPENS),
      writes("Ada", "22:00", "good night", "Good night")
    ]
  },
  {
    date: "2027-03-02",
    name: "Tuesday",
    steps: [
      restarts("08:00", "good morning", "Good morning"),
      asks("08:10", "user.sister"),
      sendsFile("12:00", "packing.txt", "tent\nstove\nmap of the lakes\n", "packing list"),
      asks("12:10", "user.coffee"),
      writes("Ada", "17:00", "Count the words of the packing list in the background, please", "six words")
    ]
  },
  {
    date: "2027-03-03",
    name: "Wednesday",
    steps: [
      beginsSession("08:00", "good morning", "Good morning"),
      tells("08:10", "user.bicycle"),
      tells("08:20", "user.shoes"),
      sendsPhoto("12:00"),
      tells("12:10", "user.allergy"),
      asks("12:20", "user.dentist")
    ]
  },
  {
    date: "2027-03-04",
    name: "Thursday",
    steps: [
      writes("Ada", "08:00", "Write into my notes: Who calls the landlord?", "in your notes"),
      writes("Ada", "08:10", "Please learn to list the open questions of my notes", "have proposed"),
      taps("Ada", "08:20", "Approve", "Done"),
      writes("Ada", "08:30", "Which questions of my notes are open?", "One: who calls")
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
        title: "Ada lets Bob in, who sends the code from his phone.",
        act: (home) => letIn(home, "Bob", "choirctl dm pair bob --gateway telegram"),
        until: "You are in"
      },
      writes("Bob", "10:10", "thank you", "welcome"),
      writes("Ada", "10:20", "good morning", "Good morning")
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
      tells("10:40", "user.lake")
    ]
  }
]

const SECOND_WEEK: ReadonlyArray<Day> = [
  {
    date: "2027-03-08",
    name: "The second Monday",
    steps: [sendsPhoto("12:00"), asks("12:10", "user.shoes")]
  },
  {
    date: "2027-03-09",
    name: "The second Tuesday",
    steps: [
      restarts("08:00", "good morning", "Good morning"),
      asks("08:10", "user.birthday"),
      writes("Ada", "12:00", GARDEN, OPENS),
      asks("12:10", "user.allergy")
    ]
  },
  {
    date: "2027-03-11",
    name: "The second Thursday",
    steps: [
      beginsSession("08:00", "good morning", "Good morning"),
      sendsPhoto("12:00"),
      asks("12:10", "user.landlord"),
      asks("12:20", "user.train"),
      asks("12:30", "user.wifi")
    ]
  },
  {
    date: "2027-03-12",
    name: "The second Friday",
    steps: [
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
