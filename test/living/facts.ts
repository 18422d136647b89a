/** What the model is told to remember, and what it is asked of it on a later day. */
interface Fact {
  readonly key: string
  readonly told: string
  readonly question: string
  readonly answer: string
}

const fact = (key: string, told: string, question: string, answer: string): Fact => ({ key, told, question, answer })

export const FACTS: ReadonlyArray<Fact> = [
  fact("user.sister", "my sister Clara lives in Lisbon", "Where does Clara live?", "Clara lives in Lisbon."),
  fact("user.coffee", "I drink my coffee without sugar", "How do I drink my coffee?", "Without sugar."),
  fact(
    "user.dentist",
    "my dentist is Doctor Brandt in the Lindenallee",
    "Who is my dentist?",
    "Doctor Brandt in the Lindenallee."
  ),
  fact("user.bicycle", "my bicycle has the lock code 4711", "What is the code of my bicycle lock?", "4711."),
  fact("user.shoes", "my shoe size is 41", "What is my shoe size?", "41."),
  fact("user.allergy", "I am allergic to hazelnuts", "What am I allergic to?", "To hazelnuts."),
  fact("user.landlord", "our landlord is called Petersen", "What is our landlord called?", "Petersen."),
  fact(
    "user.train",
    "the train to Hamburg leaves from platform 7",
    "From which platform does the train to Hamburg leave?",
    "From platform 7."
  ),
  fact("user.wifi", "the wifi of the office is called Heron", "What is the wifi of the office called?", "Heron."),
  fact("user.birthday", "Bob has his birthday on 9 March", "When does Bob have his birthday?", "On 9 March."),
  fact(
    "user.tent",
    "the tent is in the cellar behind the skis",
    "Where is the tent?",
    "In the cellar, behind the skis."
  ),
  fact("user.paint", "the kitchen is painted in RAL 9010", "In which colour is the kitchen painted?", "RAL 9010."),
  fact(
    "user.plumber",
    "the plumber Nowak was good and cheap",
    "Which plumber was good?",
    "Nowak, who was cheap as well."
  ),
  fact(
    "user.lake",
    "we camp at the Plau lake from 3 July",
    "When do we camp at the lake?",
    "From 3 July, at the Plau lake."
  )
]
