/** The days of the fortnight, in order. */
import { Effect } from "effect"
import type { Day } from "./Day.ts"
import { firstStart, pairPhone } from "./Home.ts"
import { sendsPhoto, writes } from "./steps.ts"

const MONDAY: Day = {
  date: "2027-03-01",
  name: "Monday",
  steps: [
    {
      at: "08:00",
      title: "Ada sets Choir up with npm start, adds her bot, and sends it the code that she was shown.",
      act: (home) => Effect.andThen(firstStart(home), pairPhone(home)),
      until: "You are in"
    },
    writes("Ada", "08:10", "good morning", "Good morning"),
    writes("Ada", "08:20", "Remember that my sister Clara lives in Lisbon", "I will remember"),
    writes("Ada", "08:30", "Remember that I drink my coffee without sugar", "I will remember"),
    writes("Ada", "08:40", "Remember that my dentist is Doctor Brandt in the Lindenallee", "I will remember"),
    sendsPhoto("12:00", "receipt"),
    writes("Ada", "18:00", "When does https://example.org/garden open?", "opens at nine"),
    writes("Ada", "22:00", "good night", "Good night")
  ]
}

export const DAYS: ReadonlyArray<Day> = [MONDAY]

export const PAGES: Readonly<Record<string, string>> = {
  "/garden":
    "<title>The garden</title><h1>The garden</h1><p>The garden opens at nine in the morning and closes at six in the evening, every day of the week.</p>"
}
