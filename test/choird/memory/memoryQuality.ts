/**
 * A set of conversations with questions whose answers are known by construction: facts told in passing, codes that differ in one word, values
 * that changed, and the same matter at different times. Drawn from a seed.
 */
import { headerOf } from "#src/choird/memory/chunks.ts"
import { seeded } from "../../support/seeded.ts"

export interface ToldChunk {
  /** Names the chunk within the set. */
  readonly name: string
  readonly text: string
  readonly said_at: string
}

export interface AskedQuestion {
  readonly kind: "fact" | "paraphrase" | "code" | "update" | "contradiction" | "time"
  readonly text: string
  /** The chunk that answers it; of a changed value the newest. */
  readonly answer: string
  /** Words that any text which answers it has. */
  readonly says: ReadonlyArray<string>
  /** Of a changed value the chunk with the earlier one. */
  readonly before?: string
}

/** A fact for the store of facts, whose key may be written more than once. */
export interface ToldFact {
  readonly key: string
  /** The earlier value, and the one in force. */
  readonly before: string
  readonly now: string
  readonly question: string
}

export interface QualitySet {
  readonly chunks: ReadonlyArray<ToldChunk>
  readonly questions: ReadonlyArray<AskedQuestion>
  readonly facts: ReadonlyArray<ToldFact>
  /** Messages that nothing in the set answers. */
  readonly unrelated: ReadonlyArray<string>
}

const PEOPLE = [
  "my brother Ivo",
  "my neighbour Marta",
  "our plumber Teo",
  "my aunt Selma",
  "my boss Quentin",
  "our tenant Ruth"
]

/** How something about a person is told, and two questions: one in its words, one in others. `V` is the value. */
const MATTERS: ReadonlyArray<{
  readonly told: string
  readonly direct: string
  readonly other: string
  readonly values: ReadonlyArray<string>
}> = [
  {
    told: "P is allergic to V, so no more of that at dinner.",
    direct: "What is P allergic to?",
    other: "Which food must I keep away from P?",
    values: ["walnuts", "shellfish", "celery", "sesame", "strawberries", "mustard"]
  },
  {
    told: "P plays the V in an orchestra every Thursday.",
    direct: "What does P play in the orchestra?",
    other: "Which musical instrument is P into?",
    values: ["cello", "oboe", "harp", "trombone", "viola", "bassoon"]
  },
  {
    told: "P adopted a V from the shelter last weekend.",
    direct: "What did P adopt from the shelter?",
    other: "What kind of pet lives with P?",
    values: ["greyhound", "parrot", "tabby cat", "tortoise", "rabbit", "beagle"]
  },
  {
    told: "P is flying to V for the holidays with the kids.",
    direct: "Where is P flying for the holidays?",
    other: "What is the travel destination of P?",
    values: ["Iceland", "Madeira", "Vietnam", "Malta", "Peru", "Norway"]
  },
  {
    told: "P has just started a new job as a V at the hospital.",
    direct: "What is P's new job at the hospital?",
    other: "What does P do for a living?",
    values: ["nurse", "radiologist", "pharmacist", "midwife", "surgeon", "caterer"]
  },
  {
    told: "P drives an old V that breaks down every winter.",
    direct: "What does P drive?",
    other: "Which car brand belongs to P?",
    values: ["Volvo", "Fiat", "Saab", "Peugeot", "Skoda", "Mazda"]
  },
  {
    told: "P cannot stand V music and turned the radio off.",
    direct: "Which music can P not stand?",
    other: "What genre does P dislike hearing?",
    values: ["techno", "country", "opera", "jazz", "metal", "folk"]
  },
  {
    told: "P broke the left V while skiing and wears a cast.",
    direct: "What did P break while skiing?",
    other: "Where is P injured?",
    values: ["wrist", "ankle", "collarbone", "thumb", "shin", "elbow"]
  },
  {
    told: "P will marry V at the registry office in the autumn.",
    direct: "Whom will P marry?",
    other: "Who is P's fiancé?",
    values: ["Jonas", "Camille", "Noor", "Piotr", "Elif", "Sanna"]
  },
  {
    told: "P is learning V with an app before work.",
    direct: "What is P learning with an app?",
    other: "Which foreign language does P study?",
    values: ["Korean", "Finnish", "Arabic", "Czech", "Swahili", "Greek"]
  }
]

const PLACES = [
  "garage",
  "bike shed",
  "boat house",
  "server room",
  "allotment gate",
  "post box",
  "wine cellar",
  "roof terrace",
  "laundry",
  "sauna",
  "attic",
  "pool house"
]

/** Something that has one value at a time. */
const CHANGING: ReadonlyArray<{
  readonly key: string
  readonly told: string
  readonly now: string
  readonly question: string
  readonly values: readonly [string, string]
}> = [
  {
    key: "user.city",
    told: "I live in V, near the river.",
    now: "We moved last week: I live in V now.",
    question: "Where do I live?",
    values: ["Ghent", "Turin"]
  },
  {
    key: "user.phone.model",
    told: "My phone is a V and it is slow.",
    now: "My phone is a V now, much faster.",
    question: "Which phone do I have?",
    values: ["Fairphone", "Pixel"]
  },
  {
    key: "work.deadline",
    told: "The deadline of the audit is V.",
    now: "The deadline of the audit moved, it is V now.",
    question: "When is the deadline of the audit?",
    values: ["the 3rd of May", "the 19th of June"]
  },
  {
    key: "user.diet",
    told: "I eat V these days.",
    now: "I changed my diet, I eat V now.",
    question: "What is my diet?",
    values: ["vegetarian", "vegan"]
  },
  {
    key: "team.lead",
    told: "The lead of my team is V.",
    now: "The lead of my team has changed, it is V now.",
    question: "Who leads my team?",
    values: ["Oona", "Bastien"]
  },
  {
    key: "gym.day",
    told: "I go to the gym on V.",
    now: "I go to the gym on V now, the other day is full.",
    question: "On which day do I go to the gym?",
    values: ["Monday", "Saturday"]
  },
  {
    key: "user.bank",
    told: "My bank is V.",
    now: "I left my old bank, my bank is V now.",
    question: "Which bank am I with?",
    values: ["Argenta", "Triodos"]
  },
  {
    key: "home.rent",
    told: "Our rent is V euros a month.",
    now: "Our rent went up, it is V euros a month now.",
    question: "How much rent do we pay?",
    values: ["940", "1015"]
  },
  {
    key: "user.doctor",
    told: "My doctor is V.",
    now: "My doctor retired, my doctor is V now.",
    question: "Who is my doctor?",
    values: ["Doctor Lund", "Doctor Ferrante"]
  },
  {
    key: "project.language",
    told: "We write the importer in V.",
    now: "We rewrote the importer, it is in V now.",
    question: "Which language is the importer written in?",
    values: ["Perl", "Rust"]
  }
]

const DATED = ["the kitchen", "the roof", "the garden wall", "the insurance", "the choir trip", "the website"]
const NEWS = ["the estimate came to V euros", "we agreed on V euros with the firm", "the invoice over V euros arrived"]
const MONTHS = ["January", "March", "May", "July", "September", "November"]

const THINGS = [
  "report",
  "invitation",
  "spreadsheet",
  "speech",
  "recipe",
  "poster",
  "timetable",
  "review",
  "letter",
  "quiz",
  "label",
  "budget",
  "story",
  "menu"
]
/** Talk about nothing that is asked; `T` is a thing. */
const CHAT = [
  "Could you make that T shorter, please? Sure, these are the five points of the T that matter.",
  "Thanks, the T helped a lot. You are welcome, tell me if something of it is missing.",
  "What a long day with this T. I hope the evening is quieter, the T can wait.",
  "Please round the numbers in the T. Done, the T has two digits now.",
  "The T reads well, only the second paragraph drags. I tightened the T and kept your examples.",
  "Remind me how to rename the branch with the T. Move it under the new name, then push the T again.",
  "It has been raining on the T since Tuesday. Then the ink of the T will need another day to dry.",
  "Can you explain the first part of the T once more? It begins with the smallest case of the T.",
  "The printer jammed on the T again. Open the tray on the left and pull the T out slowly.",
  "I like the blue T better. Blue it is, I changed the colours of the T."
]

const UNRELATED = [
  "Write a haiku about snow.",
  "What is 17 times 23?",
  "Translate good morning into Japanese.",
  "How do vaccines work?",
  "Sort these numbers: 9, 2, 5.",
  "Explain the offside rule.",
  "Which planet has the most moons?",
  "Give me a regular expression for dates.",
  "Thank you, that is all for today!",
  "How many grams are in an ounce?",
  "Summarise the plot of Hamlet.",
  "Why is the sky blue?",
  "ok",
  'Convert this JSON to YAML: {"a": 1}',
  "Who painted the Mona Lisa?",
  "What is the boiling point of ethanol?"
]

export const qualitySet = (seed: number): QualitySet => {
  const random = seeded(seed)
  const pick = <A>(all: ReadonlyArray<A>): A => all[random(all.length)]!
  const chunks: Array<ToldChunk> = []
  const questions: Array<AskedQuestion> = []
  const chat = () =>
    pick(CHAT)
      .replaceAll("T ", `${pick(THINGS)} `)
      .replaceAll("T.", `${pick(THINGS)}.`)
  /** A chunk as sessions give them: a header, the words, the answer, and other talk around them. */
  const tell = (words: string, said_at: string, more = 1): string => {
    const name = `chunk ${chunks.length}`
    const talk = Array.from(
      { length: more },
      () => `user: ${chat().replace("? ", "?\nagent: ").replace(". ", ".\nagent: ")}`
    )
    const told = `user: ${words}\nagent: ${pick(["I will keep that in mind.", "Noted.", "Good to know, thanks for telling me."])}`
    const lines = random(2) === 0 ? [told, ...talk] : [...talk, told]
    chunks.push({ name, said_at, text: [headerOf(said_at, {}), ...lines].join("\n") })
    return name
  }
  const instant = (month: number, day: number, hour = 9) => new Date(Date.UTC(2026, month, day, hour)).toISOString()
  const anywhen = () => instant(random(6), 1 + random(27), 7 + random(12))

  for (const { direct, other, told, values } of MATTERS)
    for (const [place, person] of PEOPLE.entries()) {
      const value = values[(place + seed) % values.length]!
      const words = told.replace("P", person).replace("V", value)
      const answer = tell(words.charAt(0).toUpperCase() + words.slice(1), anywhen())
      const says = [value, person.split(" ").at(-1) ?? ""]
      if (random(2) === 0) questions.push({ kind: "fact", text: direct.replaceAll("P", person), answer, says })
      else questions.push({ kind: "paraphrase", text: other.replaceAll("P", person), answer, says })
    }
  for (const place of PLACES) {
    const code = 1000 + random(9000)
    const answer = tell(`The code for the ${place} is ${code}.`, anywhen())
    questions.push({ kind: "code", text: `What is the code for the ${place}?`, answer, says: [String(code)] })
  }
  for (const [place, { now, question, told, values }] of CHANGING.entries()) {
    const before = tell(told.replace("V", values[0]), instant(place % 3, 4 + place), 0)
    const answer = tell(now.replace("V", values[1]), instant(3 + (place % 3), 4 + place), 0)
    questions.push({
      kind: place % 2 === 0 ? "update" : "contradiction",
      text: question,
      answer,
      before,
      says: [values[1]]
    })
  }
  for (const [place, matter] of DATED.entries())
    for (const month of [place % 3, 3 + (place % 3)]) {
      const news = pick(NEWS).replace("V", String(200 + random(900)))
      const answer = tell(`About ${matter}: ${news}.`, instant(2 * month, 5 + place))
      questions.push({
        kind: "time",
        text: `What did I say about ${matter} in ${MONTHS[month]}?`,
        answer,
        says: [news, matter]
      })
    }
  for (let n = 0; n < 40; n += 1) tell(chat(), anywhen(), 2)
  const facts = CHANGING.map(({ key, now, question, told, values }) => ({
    key,
    before: told.replace("V", values[0]),
    now: now.replace("V", values[1]),
    question
  }))
  return { chunks, questions, facts, unrelated: UNRELATED }
}
