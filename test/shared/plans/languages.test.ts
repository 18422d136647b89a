import { assert, describe, it } from "@effect/vitest"
import { DateTime, Result } from "effect"
import { readWhen } from "#src/shared/plans/readWhen.ts"
import { whenText } from "#src/shared/plans/whenText.ts"

const zone = DateTime.zoneMakeNamedUnsafe("Europe/Berlin")
/** A Monday, 13:40 in Berlin. */
const now_ms = Date.parse("2026-11-30T12:40:00Z")

const read = (text: string): string => {
  const { rest, when } = Result.getOrThrow(readWhen(text, { now_ms, zone }))
  return `${whenText(when, zone, now_ms)} | ${rest}`
}

type Sentences = Readonly<Record<string, string>>

const SENTENCES: Readonly<Record<string, Sentences>> = {
  English: {
    "every morning at 7 x": "daily at 07:00 | x",
    "every evening at 8 x": "daily at 20:00 | x",
    "every evening x": "daily at 20:00 | x",
    "on mondays at 9:00 standup": "every mon at 09:00 | standup",
    "20m take the bread out": "today at 14:00 | take the bread out",
    "in 2 hours call Bob": "today at 15:40 | call Bob",
    "tomorrow 9:00 dentist": "tomorrow at 09:00 | dentist",
    "every monday 8:00 the bins": "every mon at 08:00 | the bins",
    "on 24 Dec at noon lunch": "on Thu 24 December at 12:00 | lunch",
    "take the bread out in 20 minutes": "today at 14:00 | take the bread out",
    "every weekday at 8 standup": "weekdays at 08:00 | standup",
    "2026-12-24 18:00 x": "on Thu 24 December at 18:00 | x",
    "0 8 * * 1-5 standup": "0 8 * * 1-5 (cron) | standup",
    "monthly on the 1st at 9 rent": "monthly on 1 at 09:00 | rent",
    "every 3 days pills": "every 3 days | pills",
    "me to call Bob tomorrow at 9": "tomorrow at 09:00 | call Bob",
    "remind me in 20 minutes to take the bread out": "today at 14:00 | take the bread out",
    "at 8 every weekday standup": "weekdays at 08:00 | standup",
    "standup at 8 every weekday": "weekdays at 08:00 | standup",
    "every monday the bins at 8": "every mon at 08:00 | the bins",
    "in two weeks at 9 x": "on Mon 14 December at 09:00 | x",
    "in half an hour tea": "today at 14:10 | tea",
    "9:00 dentist tomorrow": "tomorrow at 09:00 | dentist",
    "Sunday lunch with Ada in 20 minutes": "today at 14:00 | Sunday lunch with Ada",
    "march to the store at 9": "tomorrow at 09:00 | march to the store",
    "every mon, thu at 18:00 x": "every mon, thu at 18:00 | x",
    "every other day x": "every 2 days | x",
    "every week on monday at 8 x": "every mon at 08:00 | x",
    "10 Dec at 7 in the evening x": "on Thu 10 December at 19:00 | x"
  },
  German: {
    "jeden Abend um 8 x": "daily at 20:00 | x",
    "am Freitag um halb 9 x": "on Fri 4 December at 08:30 | x",
    "um viertel nach 8 x": "tomorrow at 08:15 | x",
    "morgen früh Zahnarzt": "tomorrow at 07:00 | Zahnarzt",
    "am 24.12. um 18 Uhr Essen": "on Thu 24 December at 18:00 | Essen",
    "heute Abend um 8 Kino": "today at 20:00 | Kino",
    "um 8 Uhr abends Kino": "today at 20:00 | Kino",
    "übermorgen um 15:30 Auto": "on Wed 2 December at 15:30 | Auto",
    "alle 20 Minuten trinken": "every 20 minutes | trinken",
    "jeden Tag um 8 Tabletten": "daily at 08:00 | Tabletten",
    "werktags um 7:30 Brief": "weekdays at 07:30 | Brief",
    "nächsten Montag um 8 x": "on Mon 7 December at 08:00 | x",
    "in einer halben Stunde Tee": "today at 14:10 | Tee",
    "das Brot in 20 Minuten": "today at 14:00 | das Brot",
    "jeden Monat am 1. um 9 Miete": "monthly on 1 at 09:00 | Miete",
    "montags um 8 Müll": "every mon at 08:00 | Müll",
    "Müll jeden Montag um 8": "every mon at 08:00 | Müll"
  },
  French: {
    "tous les soirs à 8h x": "daily at 20:00 | x",
    "demain à 9h dentiste": "tomorrow at 09:00 | dentiste",
    "le 24 décembre à midi repas": "on Thu 24 December at 12:00 | repas",
    "dans 20 minutes sortir le pain": "today at 14:00 | sortir le pain",
    "tous les jours à 8h pilules": "daily at 08:00 | pilules",
    "chaque lundi à 8h poubelles": "every mon at 08:00 | poubelles",
    "après-demain à 10h x": "on Wed 2 December at 10:00 | x",
    "dentiste après-demain à 10h": "on Wed 2 December at 10:00 | dentiste",
    "lundi prochain à 8h x": "on Mon 7 December at 08:00 | x",
    "toutes les 2 heures boire": "every 2 hours | boire",
    "à 8 heures du soir x": "today at 20:00 | x"
  },
  Spanish: {
    "cada mañana a las 7 x": "daily at 07:00 | x",
    "el lunes que viene a las 9:00 x": "on Mon 7 December at 09:00 | x",
    "mañana a las 9 dentista": "tomorrow at 09:00 | dentista",
    "en 20 minutos sacar el pan": "today at 14:00 | sacar el pan",
    "el 24 de diciembre a las 18:00 cena": "on Thu 24 December at 18:00 | cena",
    "todos los días a las 8 pastillas": "daily at 08:00 | pastillas",
    "cada lunes a las 8 basura": "every mon at 08:00 | basura",
    "pasado mañana a las 10 x": "on Wed 2 December at 10:00 | x",
    "a las 8 de la tarde x": "today at 20:00 | x",
    "mañana al mediodía comida": "tomorrow at 12:00 | comida"
  },
  Italian: {
    "ogni sera alle 8 x": "daily at 20:00 | x",
    "domani alle 9 dentista": "tomorrow at 09:00 | dentista",
    "tra 20 minuti il pane": "today at 14:00 | il pane",
    "il 24 dicembre alle 18:00 cena": "on Thu 24 December at 18:00 | cena",
    "ogni giorno alle 8 pillole": "daily at 08:00 | pillole",
    "ogni lunedì alle 8 rifiuti": "every mon at 08:00 | rifiuti",
    "dopodomani alle 10 x": "on Wed 2 December at 10:00 | x",
    "tra un'ora x": "today at 14:40 | x",
    "tra mezz'ora x": "today at 14:10 | x"
  },
  Portuguese: {
    "toda noite às 8 x": "daily at 20:00 | x",
    "amanhã às 9 dentista": "tomorrow at 09:00 | dentista",
    "em 20 minutos tirar o pão": "today at 14:00 | tirar o pão",
    "24 de dezembro às 18:00 jantar": "on Thu 24 December at 18:00 | jantar",
    "todos os dias às 8 remédio": "daily at 08:00 | remédio",
    "toda segunda-feira às 8 lixo": "every mon at 08:00 | lixo",
    "depois de amanhã às 10 x": "on Wed 2 December at 10:00 | x",
    "daqui a 2 horas x": "today at 15:40 | x"
  },
  Dutch: {
    "morgen om half 9 x": "tomorrow at 08:30 | x",
    "morgen om 9 uur tandarts": "tomorrow at 09:00 | tandarts",
    "over 20 minuten brood": "today at 14:00 | brood",
    "24 december om 18:00 eten": "on Thu 24 December at 18:00 | eten",
    "elke dag om 8 uur pillen": "daily at 08:00 | pillen",
    "elke maandag om 8 uur vuilnis": "every mon at 08:00 | vuilnis",
    "overmorgen om 10 uur x": "on Wed 2 December at 10:00 | x",
    "vanavond bellen": "today at 20:00 | bellen"
  },
  Russian: {
    "каждый вечер в 8 x": "daily at 20:00 | x",
    "завтра в 9 стоматолог": "tomorrow at 09:00 | стоматолог",
    "через 20 минут хлеб": "today at 14:00 | хлеб",
    "24 декабря в 18:00 ужин": "on Thu 24 December at 18:00 | ужин",
    "каждый день в 8:00 таблетки": "daily at 08:00 | таблетки",
    "каждый понедельник в 8 мусор": "every mon at 08:00 | мусор",
    "послезавтра в 10 x": "on Wed 2 December at 10:00 | x",
    "по будням в 9 планёрка": "weekdays at 09:00 | планёрка",
    "через час чай": "today at 14:40 | чай",
    "через полчаса чай": "today at 14:10 | чай"
  },
  Ukrainian: {
    "щовечора о 8 x": "daily at 20:00 | x",
    "завтра о 9 стоматолог": "tomorrow at 09:00 | стоматолог",
    "через 20 хвилин хліб": "today at 14:00 | хліб",
    "24 грудня о 18:00 вечеря": "on Thu 24 December at 18:00 | вечеря",
    "щодня о 8:00 ліки": "daily at 08:00 | ліки",
    "щопонеділка о 8 сміття": "every mon at 08:00 | сміття",
    "через годину чай": "today at 14:40 | чай"
  },
  Japanese: {
    "毎晩8時 x": "daily at 20:00 | x",
    明日の9時に歯医者: "tomorrow at 09:00 | 歯医者",
    "20分後にパン": "today at 14:00 | パン",
    "12月24日18時 夕食": "on Thu 24 December at 18:00 | 夕食",
    毎日8時に薬: "daily at 08:00 | 薬",
    毎週月曜8時にゴミ: "every mon at 08:00 | ゴミ",
    "平日9時 朝会": "weekdays at 09:00 | 朝会",
    "2時間後に電話": "today at 15:40 | 電話",
    "明後日10時 会議": "on Wed 2 December at 10:00 | 会議",
    "来週月曜日8時 x": "on Mon 7 December at 08:00 | x",
    "午後3時 x": "today at 15:00 | x",
    "20分ごとに水": "every 20 minutes | 水",
    "毎月1日9時 家賃": "monthly on 1 at 09:00 | 家賃"
  },
  Chinese: {
    "每天晚上8点 x": "daily at 20:00 | x",
    明天9点看牙医: "tomorrow at 09:00 | 看牙医",
    "20分钟后拿面包": "today at 14:00 | 拿面包",
    "12月24日18:00晚饭": "on Thu 24 December at 18:00 | 晚饭",
    每天8点吃药: "daily at 08:00 | 吃药",
    每周一8点倒垃圾: "every mon at 08:00 | 倒垃圾",
    工作日9点开会: "weekdays at 09:00 | 开会",
    两小时后打电话: "today at 15:40 | 打电话",
    后天上午10点开会: "on Wed 2 December at 10:00 | 开会",
    每20分钟喝水: "every 20 minutes | 喝水",
    每月1号9点房租: "monthly on 1 at 09:00 | 房租",
    "下周一8点 x": "on Mon 7 December at 08:00 | x",
    "半小时后 x": "today at 14:10 | x"
  }
}

/** Without blanks between words, a time after the text is not told from it. */
const BLANKLESS = new Set(["Japanese", "Chinese"])

describe("words for times", () => {
  for (const [language, sentences] of Object.entries(SENTENCES)) {
    it(`are read in ${language} before a text`, () => {
      assert.isAtLeast(Object.keys(sentences).length, 6)
      for (const [text, expected] of Object.entries(sentences)) assert.strictEqual(read(text), expected, text)
    })

    if (!BLANKLESS.has(language))
      it(`are read in ${language} after a text`, () => {
        for (const [text, expected] of Object.entries(sentences)) {
          const rest = expected.split(" | ")[1] ?? ""
          const words = text.slice(0, -rest.length)
          // A cron expression, a duration without a word before it, and "remind me" stand at the beginning.
          if (!text.endsWith(rest) || /\*|^\d+m |^remind/u.test(words)) continue
          assert.strictEqual(read(`${rest} ${words}`), expected, `${rest} ${words}`)
        }
      })
  }
})
