/** Words for times in English, German and Dutch. */
import { GB as en } from "chrono-node/en"
import { casual as de } from "chrono-node/de"
import { casual as nl } from "chrono-node/nl"
import type { Language } from "./Language.ts"
import { counted, DAY } from "./numbers.ts"
import { quick } from "./quick.ts"

const HOURS = {
  de: "eins|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf",
  nl: "een|twee|drie|vier|vijf|zes|zeven|acht|negen|tien|elf|twaalf"
}

/** "Half 9" is 8:30 in German and Dutch. */
const halvesOf = (language: keyof typeof HOURS, half: string, at: string) =>
  HOURS[language]
    .split("|")
    .map(
      (hour, index) => [`(?:${at} )?${half} (?:${index + 1}|${hour})`, `${at} ${index === 0 ? 12 : index}:30`] as const
    )

const LATIN = /\p{Script=Latin}/u

export const English: Language = {
  code: "en",
  script: LATIN,
  parser: quick(en, "minute"),
  isSpaced: true,
  every: "every|each|once (?:an?|every)",
  other: "other|second",
  daily: "daily|every ?day|each day|(?:every|each) morning",
  evenings: "(?:every|each) (?:evening|night|afternoon)",
  workdays: "(?:(?:every|each) )?(?:weekdays?|workdays?|working days?)",
  weekends: "(?:(?:every|each) )?weekends?",
  weekdays: [
    "sun(?:days?)?",
    "mon(?:days?)?",
    "tue(?:s|sdays?)?",
    "wed(?:nesdays?)?",
    "thu(?:rs?|rsdays?)?",
    "fri(?:days?)?",
    "sat(?:urdays?)?"
  ],
  repeated: ["sundays", "mondays", "tuesdays", "wednesdays", "thursdays", "fridays", "saturdays"],
  and: "and|&",
  units: {
    second: "s|secs?|seconds?",
    minute: "m|mins?|minutes?",
    hour: "h|hrs?|hours?",
    day: "d|days?",
    week: "w|wks?|weeks?",
    month: "months?",
    year: "y|yrs?|years?"
  },
  numbers: counted("one two three four five six seven eight nine ten eleven twelve", {
    "half an": 0.5,
    half: 0.5,
    an: 1,
    a: 1,
    fifteen: 15,
    twenty: 20,
    thirty: 30,
    forty: 40,
    "forty-five": 45,
    ninety: 90
  }),
  within: "in|within",
  later: "from now|later",
  monthly: [
    String.raw`monthly on (?:the )?${DAY}(?:st|nd|rd|th)?`,
    String.raw`(?:every|each) month on (?:the )?${DAY}(?:st|nd|rd|th)?`,
    String.raw`(?:(?:every|each)|on the|the) ${DAY}(?:st|nd|rd|th)? (?:of|in) (?:every|each|the) month`
  ],
  evening: "in the (?:evening|afternoon)|at night",
  morning: "in the morning",
  joiners: "to|that",
  leads: "at|on|by|from|the",
  rewrites: [
    [String.raw`(?:at )?half past (\d{1,2})`, "at $1:30"],
    [String.raw`(?:at )?quarter past (\d{1,2})`, "at $1:15"],
    ["the day after tomorrow", "{+2}"],
    ["day after tomorrow", "{+2}"],
    ["at midnight", "at 0:00"]
  ]
}

export const German: Language = {
  code: "de",
  script: LATIN,
  parser: quick(de, "minute"),
  isSpaced: true,
  every: "jede[nrsm]?|alle",
  other: "zweite[nrs]?",
  daily: "täglich|jeden tag|jeden (?:morgen|vormittag)",
  evenings: "jeden (?:abend|nachmittag)",
  workdays: "werktags|wochentags|(?:jeden |an )?(?:werktag(?:en|s)?|wochentag(?:en|s)?|arbeitstag(?:en|s)?)",
  weekends: "(?:jedes |am )?wochenendes?",
  weekdays: [
    "sonntage?",
    "montage?",
    "dienstage?",
    "mittwoche?",
    "donnerstage?",
    "freitage?",
    "(?:samstage?|sonnabende?)"
  ],
  repeated: ["sonntags", "montags", "dienstags", "mittwochs", "donnerstags", "freitags", "(?:samstags|sonnabends)"],
  and: "und",
  units: {
    second: "sek|sekunden?",
    minute: "min|minuten?",
    hour: "std|stunden?",
    day: "tage?n?",
    week: "wochen?",
    month: "monate?n?",
    year: "jahre?n?"
  },
  numbers: counted("ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf", {
    "einer halben": 0.5,
    "eine halbe": 0.5,
    einer: 1,
    einem: 1,
    eine: 1,
    fünfzehn: 15,
    zwanzig: 20,
    dreißig: 30,
    vierzig: 40,
    fünfundvierzig: 45
  }),
  within: "in",
  later: "später",
  monthly: [
    String.raw`(?:jeden monat|monatlich)(?: immer)? am ${DAY}\.?`,
    String.raw`(?:jeden|am) ${DAY}\.? (?:des|jedes|eines jeden|im) monats?`
  ],
  evening: "abends|am abend|nachmittags|am nachmittag",
  morning: "morgens|früh|vormittags|am vormittag",
  joiners: "daran|dass|dran",
  leads: "um|am|den|ab|im",
  rewrites: [
    [String.raw`(\d{1,2})\.\s?(\d{1,2})\.(?!\d)`, "$1/$2"],
    ["morgen früh um", "morgen um"],
    ["morgen früh", "morgen um 7:00"],
    ["heute früh um", "heute um"],
    ...halvesOf("de", "halb", "um"),
    [String.raw`(?:um )?viertel nach (\d{1,2})`, "um $1:15"],
    ["(?:zu |am )?mittag|mittags", "um 12:00"],
    ["(?:um )?mitternacht", "um 0:00"]
  ]
}

export const Dutch: Language = {
  code: "nl",
  script: LATIN,
  parser: quick(nl, "minuut"),
  isSpaced: true,
  every: "elke?|iedere?|om de",
  other: "tweede|andere",
  daily: "dagelijks|elke dag|iedere dag|(?:elke|iedere) (?:ochtend|morgen)",
  evenings: "(?:elke|iedere) (?:avond|middag)",
  workdays: "(?:elke |iedere |op )?(?:werkdag(?:en)?|weekdag(?:en)?|doordeweeks)",
  weekends: "(?:elk |ieder |in het )?weekend(?:en)?",
  weekdays: ["zondag", "maandag", "dinsdag", "woensdag", "donderdag", "vrijdag", "zaterdag"],
  repeated: ["zondags", "maandags", "dinsdags", "woensdags", "donderdags", "vrijdags", "zaterdags"],
  and: "en",
  units: {
    second: "s|sec|seconden?",
    minute: "min|minuut|minuten",
    hour: "u|uur|uren",
    day: "d|dag|dagen",
    week: "week|weken",
    month: "maand|maanden",
    year: "jaar|jaren"
  },
  numbers: counted("een twee drie vier vijf zes zeven acht negen tien elf twaalf", {
    "een half": 0.5,
    één: 1,
    vijftien: 15,
    twintig: 20,
    dertig: 30,
    veertig: 40,
    vijfenveertig: 45
  }),
  within: "over|binnen|in",
  later: "later",
  monthly: [
    String.raw`(?:elke maand|iedere maand|maandelijks) op (?:de )?${DAY}(?:e|ste|de)?`,
    String.raw`(?:op )?de ${DAY}(?:e|ste|de)? van (?:elke|iedere|de) maand`
  ],
  evening: "'s avonds|'s middags",
  morning: "'s ochtends|'s morgens",
  joiners: "dat|om|te",
  leads: "om|op|de|vanaf",
  rewrites: [
    ["overmorgen", "{/2}"],
    ...halvesOf("nl", "half", "om"),
    ["(?:tussen de )?(?:om )?twaalf uur 's middags", "om 12:00"],
    ["(?:om )?middernacht", "om 0:00"]
  ]
}
