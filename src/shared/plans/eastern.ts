/** Words for times in Japanese and Chinese, which have no blanks between words. */
import { casual as ja } from "chrono-node/ja"
import { casual as zh } from "chrono-node/zh"
import type { Language } from "./Language.ts"
import { counted, DAY } from "./numbers.ts"

const DAYS = ["日", "月", "火", "水", "木", "金", "土"]
const JAPANESE = /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]/u
const HAN = /\p{Script=Han}/u
const WEEK = "(?:周|星期|週|礼拜|禮拜)"
const EASTERN_NUMBERS = counted("一 二 三 四 五 六 七 八 九 十 十一 十二", {
  半: 0.5,
  两: 2,
  兩: 2,
  十五: 15,
  二十: 20,
  三十: 30,
  四十五: 45
})

export const Japanese: Language = {
  code: "ja",
  script: JAPANESE,
  parser: ja,
  isSpaced: false,
  every: "毎",
  other: "",
  daily: "毎日|毎朝",
  evenings: "毎晩",
  workdays: "毎?平日(?:毎日)?に?",
  weekends: "毎週末|週末ごとに",
  weekdays: DAYS.map((day) => `週?${day}曜日?`),
  repeated: DAYS.map((day) => `毎週の?${day}曜日?`),
  and: "と",
  units: { second: "秒", minute: "分", hour: "時間", day: "日", week: "週間?", month: "か月|ヶ月|カ月", year: "年" },
  numbers: EASTERN_NUMBERS,
  within: "",
  later: "後",
  monthly: [String.raw`毎月の?${DAY}日`],
  evening: "",
  morning: "",
  joiners: "に|の|は|、",
  leads: "に|の",
  rewrites: [
    ["明後日|あさって", "{+2} "],
    ["正午", "12:00"],
    ["来週の?月曜日?", "{next1} "],
    ["来週の?火曜日?", "{next2} "],
    ["来週の?水曜日?", "{next3} "],
    ["来週の?木曜日?", "{next4} "],
    ["来週の?金曜日?", "{next5} "],
    ["来週の?土曜日?", "{next6} "],
    ["来週の?日曜日?", "{next7} "]
  ]
}

export const Chinese: Language = {
  code: "zh",
  script: HAN,
  parser: zh,
  isSpaced: false,
  every: "每隔?个?",
  other: "",
  daily: "每天|每日|每天早上|每天上午|每早",
  evenings: "每晚",
  workdays: `(?:每个?|每個)?工作日|${WEEK}一到${WEEK}?五`,
  weekends: "(?:每个?|每個)?(?:周末|週末)",
  weekdays: ["[日天]", "一", "二", "三", "四", "五", "六"].map((day) => `${WEEK}${day}`),
  repeated: ["[日天]", "一", "二", "三", "四", "五", "六"].map((day) => `每个?個?${WEEK}${day}`),
  and: "和|、",
  units: {
    second: "秒钟?|秒鐘",
    minute: "分钟|分鐘|分",
    hour: "个?小时|個?小時|个?钟头",
    day: "天|日",
    week: "个?星期|周|週",
    month: "个月|個月",
    year: "年"
  },
  numbers: EASTERN_NUMBERS,
  within: "",
  later: "之后|以后|后|之後|以後|後",
  monthly: [String.raw`每个?個?月的?${DAY}[号號日]`],
  evening: "",
  morning: "",
  joiners: "，",
  leads: "在|于",
  rewrites: [
    ["中午12[点點]|中午|正午", "12:00"],
    ["午夜|半夜", "0:00"]
  ]
}
