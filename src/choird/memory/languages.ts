/** The database's stemmers that a word goes to: by its script, and among languages of one script by the small words around it. Pure. */

/** Small words that tell a language written with Latin letters, none of them English. */
const SMALL_WORDS: Readonly<Record<string, string>> = {
  german:
    "der und ich nicht ist das mein meine meinem meinen wann wie wer mit für auf ein eine einen dem von wir sie auch bei nach sind welche welcher welchen wird keine alle zwei bis im vor dass unser unsere habe erkläre wollen möchten",
  dutch: "het een ik niet mijn wanneer wie voor heeft zijn dat naar waar deze wij ook bij",
  french: "le les des est je mon ma mes une et dans pour avec qui quand où sur pas du au nous quel quelle",
  spanish: "el los las es mi una y para con que cuándo dónde qué por del se cómo quién tiene está",
  italian: "il lo gli è mio mia una con che quando dove chi di del della non sono ha",
  portuguese: "os é meu minha uma para com quando onde não da em um quem como está são",
  catalan: "els és meu amb quan una què és són aquest tinc",
  romanian: "și este meu mea când unde cine cu pentru nu să sunt",
  swedish: "och jag är inte mitt när vem på ett av till det som vad har",
  danish: "og jeg er ikke mit hvornår hvor hvem på et af til det hvad har",
  norwegian: "og jeg er ikke mitt når hvor hvem på et av til det hva har",
  finnish: "ja minun ei milloin missä kuka että mikä ovat olen hän",
  hungarian: "és az egy nem mikor hol hogy mi ki vagyok nekem",
  turkish: "ve bir benim zaman nerede kim için değil bu ile hangi mi",
  indonesian: "dan yang saya adalah tidak kapan dimana siapa dengan untuk ini di"
}
const LANGUAGES = Object.entries(SMALL_WORDS).map(([name, words]) => ({ name, small: words.split(" ") }))

/** Small words that a text has to have before they tell its language; of a short text one does. */
const SMALL_WORDS_MIN = 2
const SHORT_WORDS_MAX = 6
/** Words of a text that are looked at. */
const LOOKED_AT_MAX = 400

/** The language of a text in Latin letters, of those that the database has a stemmer for and that are not English; by its words in lower case. */
export const languageOf = (text: string): string | undefined => {
  const words = (text.match(/\p{Script=Latin}+/gu) ?? []).slice(0, LOOKED_AT_MAX)
  const once = new Set(words)
  const needed = words.length <= SHORT_WORDS_MAX ? 1 : SMALL_WORDS_MIN
  let best: { readonly name: string; readonly found: number } | undefined
  for (const { name, small } of LANGUAGES) {
    const found = small.filter((word) => once.has(word)).length
    if (found >= needed && found > (best?.found ?? 0)) best = { name, found }
  }
  return best?.name
}

/** Whether a text may be English: most of its letters are Latin, and its small words are of no other language. */
export const mayBeEnglish = (text: string): boolean => {
  const letters = text.match(/\p{L}/gu)?.length ?? 0
  const latin = text.match(/\p{Script=Latin}/gu)?.length ?? 0
  return 2 * latin >= letters && languageOf(text.toLowerCase()) === undefined
}

const SCRIPTS: ReadonlyArray<readonly [script: RegExp, language: string]> = [
  [/^\p{Script=Cyrillic}/u, "russian"],
  [/^\p{Script=Arabic}/u, "arabic"],
  [/^\p{Script=Greek}/u, "greek"],
  [/^\p{Script=Armenian}/u, "armenian"],
  [/^\p{Script=Devanagari}/u, "hindi"],
  [/^\p{Script=Tamil}/u, "tamil"]
]

/** The dictionaries that shorten a word. Latin words go to the English one too, since a short query does not tell its language. */
export const stemmersOf = (word: string, language: string | undefined): ReadonlyArray<string> => {
  if (/^[\p{Script=Latin}]/u.test(word))
    return language === undefined ? ["english_stem"] : ["english_stem", `${language}_stem`]
  const [, other] = SCRIPTS.find(([script]) => script.test(word)) ?? []
  return other === undefined ? [] : [`${other}_stem`]
}

/** Words that hold a sentence together, of languages for which the database has no list of them. */
const FUNCTION_WORDS = new Set(
  [
    // Chinese
    "的 了 是 在 我 你 您 他 她 它 们 我们 你们 他们 我的 你的 他的 她的 吗 呢 吧 啊 什么 哪 哪里 哪儿 哪个 哪天 哪家 谁 谁的 怎么 怎样 几 多少 和 与 或 也 都 就 还 有 没 没有 不 很 这 那 这个 那个 请 给 把 被 对 从 到 为 为什么 什么时候 时候 个 叫 要 会 能 想 说 一个",
    // Japanese
    "の は が を に へ と で も や か ね よ な た て から まで より です ます でし まし した する して します い る ない なに 何 いつ どこ どの どれ 誰 だれ どう なぜ いくつ いくら 私 僕 俺 あなた これ それ あれ この その あの ある あり いる だ という こと もの さん ん ください 教え 何で 何と どんな いう いい",
    // Korean
    "은 는 이 가 을 를 의 에 와 과 도 나 내 제 저 너 무엇 뭐 언제 어디 누구 어느 왜 어떻게 몇 있어 입니까 인가요 이에요 예요 내가 제가 나의",
    // Thai
    "ที่ และ ของ ฉัน ผม คุณ เรา เป็น คือ ใน มี ไม่ ได้ ให้ กับ จะ อะไร ไหน ที่ไหน เมื่อไร เมื่อไหร่ ใคร อย่างไร กี่ ไหม ครับ ค่ะ คะ นี้ นั้น ว่า อยู่",
    // Arabic
    "في من على إلى الى عن مع هذا هذه ذلك تلك ما ماذا متى أين اين كيف هل هو هي أنا انا أنت كم لماذا الذي التي كان كانت يكون و أو ثم لا لم لن قد أي اي عند لي له لها بي كل بين ان أن إن",
    // Hebrew
    "של את על אני הוא היא מה מי איפה מתי איך למה זה זאת עם לא כן יש אין שלי שלך הם אנחנו"
  ].flatMap((words) => words.split(" "))
)

export const isFunctionWord = (word: string): boolean => FUNCTION_WORDS.has(word)

const DENIALS = new Set(
  "not no never none nobody nothing without cannot don doesn didn isn aren won wouldn shouldn can't nicht kein keine keinen nie niemals ohne ne pas jamais aucun sans nunca ningún sin mai senza nem não jamais sem niet geen nooit inte ingen aldrig ikke aldri ei не нет никогда без нельзя لا لم لن ليس بدون لیس לא בלי אין".split(
    " "
  )
)
/** Of scripts that write no blanks. */
const DENIES = /[不没沒别未無无]|ない|なく|ません|ไม่|안 |않|없/u

/** Whether a text denies or forbids something. */
export const denies = (text: string): boolean =>
  DENIES.test(text) ||
  /n['’]t\b/iu.test(text) ||
  (text.toLowerCase().match(/\p{L}+/gu) ?? []).some((word) => DENIALS.has(word))
