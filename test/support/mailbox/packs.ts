/** The words of the mailbox in several languages, and the sets of characters that programs wrote each of them in. */

export interface Pack {
  readonly language: string
  /** A first name, a greeting, a sentence, a product and a place. */
  readonly words: readonly [name: string, greeting: string, sentence: string, product: string, place: string]
  readonly sets: ReadonlyArray<string>
}

/** The marks of {@link Pack.words} in the shapes and in the golden files. */
export const MARKS = ["{name}", "{greeting}", "{sentence}", "{product}", "{place}"] as const

export const PACKS: ReadonlyArray<Pack> = [
  {
    language: "en",
    words: ["Ada", "Hello Bob", "The meeting moves to Friday", "Umbrella", "Elm Street 5"],
    sets: ["us-ascii", "utf-8", "iso-8859-1"]
  },
  {
    language: "de",
    words: ["Jürgen", "Grüße an Bob", "Die Besprechung rückt auf Freitag", "Bücherregal", "Königstraße 7"],
    sets: ["iso-8859-1", "windows-1252", "utf-8", "iso-8859-15"]
  },
  {
    language: "fr",
    words: ["Zoé", "Bonjour à Bob", "La réunion est déplacée à vendredi", "Théière", "Rue de l’Église 3"],
    sets: ["windows-1252", "utf-8"]
  },
  {
    language: "ru",
    words: ["Анна", "Здравствуйте Боб", "Встреча переносится на пятницу", "Зонтик", "Тверская улица 9"],
    sets: ["koi8-r", "windows-1251", "utf-8"]
  },
  {
    language: "ja",
    words: ["花子", "ボブさん、こんにちは", "会議は金曜日に変わりました", "雨傘", "銀座四丁目"],
    sets: ["iso-2022-jp", "shift_jis", "utf-8", "euc-jp"]
  },
  { language: "zh", words: ["小明", "鲍勃你好", "会议改到星期五", "雨伞", "中山路八号"], sets: ["gbk", "utf-8"] },
  {
    language: "ko",
    words: ["지민", "밥에게 안부를", "회의는 금요일로 바뀌었습니다", "우산", "세종로 오번지"],
    sets: ["euc-kr", "utf-8"]
  },
  {
    language: "he",
    words: ["נועה", "שלום בוב", "הפגישה עברה ליום שישי", "מטריה", "רחוב הרצל"],
    sets: ["windows-1255", "utf-8"]
  },
  {
    language: "el",
    words: ["Ελένη", "Γεια σου Μπομπ", "Η συνάντηση μεταφέρεται την Παρασκευή", "Ομπρέλα", "Οδός Ερμού"],
    sets: ["iso-8859-7", "utf-8"]
  },
  {
    language: "pl",
    words: ["Łucja", "Cześć Bob", "Spotkanie przesunięto na piątek", "Półka", "Ulica Długa"],
    sets: ["iso-8859-2", "utf-8"]
  }
]
