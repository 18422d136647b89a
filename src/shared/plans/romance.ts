/** Words for times in French, Spanish, Italian and Portuguese. */
import { casual as fr } from "chrono-node/fr"
import { casual as es } from "chrono-node/es"
import { casual as it } from "chrono-node/it"
import { casual as pt } from "chrono-node/pt"
import type { Language } from "./Language.ts"
import { counted, DAY } from "./numbers.ts"
import { quick } from "./quick.ts"

const LATIN = /\p{Script=Latin}/u

export const French: Language = {
  code: "fr",
  script: LATIN,
  parser: quick(fr, "minute"),
  isSpaced: true,
  every: "chaque|tous les|toutes les",
  other: "",
  daily: "quotidiennement|tous les jours|chaque jour|(?:chaque|tous les) matins?",
  evenings: "(?:chaque|tous les) (?:soirs?|après-midis?)",
  workdays: "(?:chaque |tous les |les )?jours? (?:ouvrés?|ouvrables?|de (?:la )?semaine)|en semaine",
  weekends: "(?:chaque |tous les |le )?week-?ends?",
  weekdays: ["dimanches?", "lundis?", "mardis?", "mercredis?", "jeudis?", "vendredis?", "samedis?"],
  repeated: ["dimanches", "lundis", "mardis", "mercredis", "jeudis", "vendredis", "samedis"],
  and: "et",
  units: {
    second: "s|sec|secondes?",
    minute: "min|minutes?",
    hour: "h|heures?",
    day: "j|jours?",
    week: "semaines?",
    month: "mois",
    year: "ans?|années?"
  },
  numbers: counted("un deux trois quatre cinq six sept huit neuf dix onze douze", {
    "une demi": 0.5,
    une: 1,
    quinze: 15,
    vingt: 20,
    trente: 30,
    quarante: 40,
    "quarante-cinq": 45
  }),
  within: "dans|d'ici",
  later: "plus tard",
  monthly: [
    String.raw`(?:chaque mois|tous les mois) le ${DAY}(?:er)?`,
    String.raw`le ${DAY}(?:er)? (?:de chaque|du|chaque) mois`
  ],
  evening: "du soir|de l['’]après-midi",
  morning: "du matin",
  joiners: "de|que",
  leads: "à|le|au|vers|a",
  rewrites: [
    [String.raw`(\d{1,2}) heures?(?: (\d\d))?`, "$1h$2"],
    ["après[- ]demain", "{+2}"],
    ["(?:à )?midi", "à 12:00"],
    ["(?:à )?minuit", "à 0:00"]
  ]
}

export const Spanish: Language = {
  code: "es",
  script: LATIN,
  parser: quick(es, "minuto"),
  isSpaced: true,
  every: "cada|todos los|todas las",
  other: "",
  daily: "diariamente|todos los días|cada día|cada mañana|todas las mañanas",
  evenings: "cada (?:tarde|noche)|todas las (?:tardes|noches)",
  workdays: "(?:cada |todos los |los )?días? (?:laborables?|laborales?|hábil(?:es)?)|entre semana",
  weekends: "(?:cada |todos los |los )?fin(?:es)? de semana",
  weekdays: ["domingos?", "lunes", "martes", "miércoles", "jueves", "viernes", "sábados?"],
  repeated: ["los domingos", "los lunes", "los martes", "los miércoles", "los jueves", "los viernes", "los sábados"],
  and: "y",
  units: {
    second: "s|seg|segundos?",
    minute: "min|minutos?",
    hour: "h|horas?",
    day: "d|días?",
    week: "semanas?",
    month: "mes(?:es)?",
    year: "años?"
  },
  numbers: counted("un dos tres cuatro cinco seis siete ocho nueve diez once doce", {
    media: 0.5,
    una: 1,
    quince: 15,
    veinte: 20,
    treinta: 30,
    cuarenta: 40,
    "cuarenta y cinco": 45
  }),
  within: "en|dentro de",
  later: "después",
  monthly: [String.raw`(?:cada mes|todos los meses) el (?:día )?${DAY}`, String.raw`el (?:día )?${DAY} de cada mes`],
  evening: "de la (?:tarde|noche)",
  morning: "de la mañana",
  joiners: "que|de",
  leads: "a las|a la|a|el|al|la|las",
  rewrites: [
    ["pasado mañana", "{+2}"],
    ["(lunes|martes|miércoles|jueves|viernes|sábado|domingo) que viene", "próximo $1"],
    ["(?:al? )?mediodía", "a las 12:00"],
    ["(?:a (?:la )?)?medianoche", "a las 0:00"]
  ]
}

export const Italian: Language = {
  code: "it",
  script: LATIN,
  parser: quick(it, "minut"),
  isSpaced: true,
  every: "ogni|tutti i|tutte le",
  other: "",
  daily: "quotidianamente|tutti i giorni|ogni giorno|ogni mattin[ao]|tutte le mattine",
  evenings: "ogni (?:sera|pomeriggio)|tutte le sere",
  workdays: "(?:ogni |tutti i |nei )?giorn[oi] (?:feriali?|lavorativ[oi])",
  weekends: "(?:ogni |nei |nel )?(?:fine settimana|weekend)",
  weekdays: ["domenic(?:a|he)", "lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabat[oi]"],
  repeated: ["di domenica", "di lunedì", "di martedì", "di mercoledì", "di giovedì", "di venerdì", "di sabato"],
  and: "e|ed",
  units: {
    second: "s|sec|second[oi]",
    minute: "min|minut[oi]",
    hour: "h|or[ae]",
    day: "g|giorn[oi]",
    week: "settiman[ae]",
    month: "mes[ei]",
    year: "ann[oi]"
  },
  numbers: counted("un due tre quattro cinque sei sette otto nove dieci undici dodici", {
    "mezz'": 0.5,
    "mezz’": 0.5,
    "un'": 1,
    "un’": 1,
    una: 1,
    quindici: 15,
    venti: 20,
    trenta: 30,
    quaranta: 40,
    quarantacinque: 45
  }),
  within: "tra|fra",
  later: "dopo",
  monthly: [String.raw`ogni mese il (?:giorno )?${DAY}`, String.raw`il (?:giorno )?${DAY} (?:di ogni|del|ogni) mese`],
  evening: "di sera|della sera|del pomeriggio",
  morning: "di mattina|del mattino",
  joiners: "di|che",
  leads: "alle|all'|a|il|al|le",
  rewrites: [
    ["(?:a )?mezzogiorno", "alle 12:00"],
    ["(?:a )?mezzanotte", "alle 0:00"]
  ]
}

export const Portuguese: Language = {
  code: "pt",
  script: LATIN,
  parser: pt,
  isSpaced: true,
  every: "a cada|cada|todos os|todas as|todo|toda",
  other: "",
  daily: "diariamente|todos os dias|todo dia|cada dia|(?:toda|cada) manhã|todas as manhãs",
  evenings: "(?:toda|cada) (?:tarde|noite)|todas as (?:tardes|noites)",
  workdays: "(?:todos os |nos |em |cada )?dias? (?:úteis|útil|de semana)",
  weekends: "(?:todos os |todo |aos |no )?fi(?:m|ns) de semana",
  weekdays: [
    "domingos?",
    ...["segunda", "terça", "quarta", "quinta", "sexta"].map((day) => `${day}s?(?:-feiras?)?`),
    "sábados?"
  ],
  repeated: ["aos domingos", "às segundas", "às terças", "às quartas", "às quintas", "às sextas", "aos sábados"],
  and: "e",
  units: {
    second: "s|seg|segundos?",
    minute: "min|minutos?",
    hour: "h|horas?",
    day: "d|dias?",
    week: "semanas?",
    month: "m[eê]s(?:es)?",
    year: "anos?"
  },
  numbers: counted("um dois três quatro cinco seis sete oito nove dez onze doze", {
    meia: 0.5,
    uma: 1,
    duas: 2,
    quinze: 15,
    vinte: 20,
    trinta: 30,
    quarenta: 40,
    "quarenta e cinco": 45
  }),
  within: "em|daqui a|dentro de",
  later: "depois|mais tarde",
  monthly: [
    String.raw`(?:todo mês|todos os meses|cada mês) (?:no )?dia ${DAY}`,
    String.raw`(?:no )?dia ${DAY} de cada mês`
  ],
  evening: "da (?:tarde|noite)",
  morning: "da manhã",
  joiners: "de|que",
  leads: "às|as|à|ao|no|na|em|o",
  rewrites: [
    ["depois de amanhã", "{+2}"],
    ["(?:ao )?meio-dia", "às 12:00"],
    ["(?:à )?meia-noite", "às 0:00"]
  ]
}
