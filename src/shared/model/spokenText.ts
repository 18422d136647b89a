/**
 * The words of an answer that are for people: without the thoughts that its server left in them (invariant 6), and without calls that its model
 * wrote as text. Read whole or in pieces, by the same rules.
 *
 * Thoughts in front of the answer are nobody's to read, whether their end comes or not. Where the template of the prompt opens the thoughts, only
 * their end comes, and all before it belongs to them. Behind the first words a mark may be spoken about: one in code is, and a pair with no more than
 * two words between.
 */
import { type FoundMark, isBegunMark, MARK_BEGIN, MARK_CHARS_MAX, markAt } from "./thoughtMarks.ts"

/** Places of one answer that are looked at for a mark; no model writes as many. */
const PLACES_MAX = 200_000
/** Words between two marks that are spoken about. */
const SPOKEN_WORDS_MAX = 2

/** The words that may be shown since the last piece. */
export interface Spoken {
  readonly text: string
  /** Whether everything that was shown before belongs to thoughts. */
  readonly isVoid: boolean
}

/** A mark that follows a word or a quotation mark is in the middle of a sentence. */
const MID_SENTENCE = /[\p{L}\p{N},]["'(]?[ \t]+$|["'“‘«(]$/u
/** The end of thoughts follows them or is in a line of its own; one between blanks is spoken about. */
const BEHIND_THOUGHTS = /(?:^|\n)[ \t]*$|[^\s"'“‘«(]$/u

/** Places that may mean something: in code only its end does. */
const OF_CODE = /[`\n]/u
const OF_WORDS = /[`◁]|<(?=[/|｜‖a-z]|$)|\[(?=\/?(?:t|$))/iu

/** Characters before a mark that its meaning depends on. */
const BEFORE_CHARS = 16

const WORDY = new RegExp(`\\S(?:\\s+\\S+){${SPOKEN_WORDS_MAX - 1}}\\s+\\S`, "u")

/** Knows whether a place of Markdown is in code: in a fence, or in a line between two backticks. */
const makeCode = () => {
  let isFenced = false
  let isInline = false
  let line = ""
  return {
    isIn: () => isFenced || isInline,
    pass: (text: string) => {
      const end = text.lastIndexOf("\n")
      if (end >= 0) isInline = false
      line = (end < 0 ? line + text : text.slice(end + 1)).slice(0, BEFORE_CHARS)
    },
    ticks: (count: number) => {
      if (count >= 3 && line.trim() === "") isFenced = !isFenced
      else if (!isFenced) isInline = !isInline
    }
  }
}

/** The words that were shown so far, as far as what follows depends on them. */
const makeShown = () => {
  const code = makeCode()
  let shown = ""
  let isVoid = false
  let hasWords = false
  let isSkipping = false
  /** The last characters. */
  let before = ""
  const add = (text: string) => {
    const words = isSkipping ? text.trimStart() : text
    if (words === "") return
    isSkipping = false
    hasWords ||= words.trim() !== ""
    shown += words
    before = (before + words).slice(-BEFORE_CHARS)
    code.pass(words)
  }
  return {
    add,
    addTicks: (ticks: string) => {
      code.ticks(ticks.length)
      add(ticks)
    },
    isInCode: code.isIn,
    hasWords: () => hasWords,
    before: () => before,
    /** Leaves out the blanks that follow. */
    skip: () => void (isSkipping = true),
    /** All of it belongs to thoughts. */
    forget: () => {
      shown = ""
      before = ""
      hasWords = false
      isVoid = true
      isSkipping = true
    },
    /** The words since the last time. */
    take: (): Spoken => {
      const taken = { text: shown, isVoid }
      shown = ""
      isVoid = false
      return taken
    }
  }
}
type Shown = ReturnType<typeof makeShown>

/** The text that is hidden from a mark to its end. The mark stays in front of the text that waits. */
const makeHidden = (shown: Shown) => {
  let open: FoundMark | undefined
  /** The text of it that came, which is shown where it turns out to be spoken about, without what still waits. */
  let held: Array<string> = []
  /** The place in what waits from which the end is looked for. */
  let from = 0
  const leave = (mark: FoundMark, waiting: string, end: RegExpExecArray): string => {
    const rest = end.index + end[0].length
    const isMeant = (): boolean => {
      const inside = (held.join("") + waiting.slice(0, end.index)).slice(mark.chars)
      return inside.trim() !== "" && !WORDY.test(inside)
    }
    if (mark.isSpoken && shown.hasWords() && isMeant()) shown.add(held.join("") + waiting.slice(0, rest))
    else if (!shown.hasWords()) shown.forget()
    else if (/\s$/u.test(shown.before())) shown.skip()
    open = undefined
    held = []
    return waiting.slice(rest)
  }
  return {
    isOpen: () => open !== undefined,
    enter: (mark: FoundMark) => {
      open = mark
      from = mark.chars
    },
    /** The text behind the end of the open mark, or what still waits for it. In front of the answer nothing of it can be words. */
    close: (waiting: string): string => {
      if (open === undefined) return waiting
      open.end.lastIndex = from
      const end = open.end.exec(waiting)
      if (end !== null) return leave(open, waiting, end)
      const passed = Math.max(0, waiting.length - MARK_CHARS_MAX)
      if (shown.hasWords() && passed > 0) held.push(waiting.slice(0, passed))
      from = Math.max(0, from - passed)
      return waiting.slice(passed)
    },
    /** The end of the answer: a mark within a sentence was spoken about. */
    give: (waiting: string) => {
      if (open?.hides === "thought" && open.isSpoken && MID_SENTENCE.test(shown.before()))
        shown.add(held.join("") + waiting)
    }
  }
}

/** Whether a mark at its place is one, and not a part of the words before it. */
const isMark = (mark: FoundMark, before: string): boolean => {
  if (mark.kind === "frame" || !mark.isSpoken) return true
  if (mark.kind === "end") return BEHIND_THOUGHTS.test(before)
  return mark.hides === "thought" || !MID_SENTENCE.test(before)
}

/** Takes pieces of one answer. `calls` says whether calls that are written as text are left out too. */
export const makeSpokenText = (calls: "kept" | "left out") => {
  const shown = makeShown()
  const hidden = makeHidden(shown)
  /** The text that is still to be read: it may be the beginning of a mark. */
  let waiting = ""
  let hasCall = false
  /** Whether thoughts began: a later end of some is not that of all before it. */
  let hasBegun = false
  /** Whether a call began that is kept, with all behind it. */
  const isRaw = () => hasCall && calls === "kept"
  let places = 0

  /** Passes characters on as words. */
  const pass = (chars: number) => {
    shown.add(waiting.slice(0, chars))
    waiting = waiting.slice(chars)
  }
  /** Whether a mark hides something from here on. */
  const isObeyed = (mark: FoundMark): boolean => {
    if (!isMark(mark, shown.before())) return false
    if (mark.kind === "end" && !hasBegun) shown.forget()
    if (mark.kind === "begin" && mark.hides !== "thought") hasCall = true
    return !isRaw()
  }
  const obey = (mark: FoundMark) => {
    if (mark.kind !== "begin") return void (waiting = waiting.slice(mark.chars))
    hasBegun = true
    hidden.enter(mark)
  }
  /** Goes to the next place that may mean something; false where the rest of the text has to come first. */
  const step = (isLast: boolean): boolean => {
    places += 1
    const at = isRaw() || places > PLACES_MAX ? -1 : waiting.search(shown.isInCode() ? OF_CODE : OF_WORDS)
    pass(at < 0 ? waiting.length : at)
    if (waiting === "") return false
    const [ticks = ""] = /^`+/u.exec(waiting) ?? []
    if (ticks.length === waiting.length && !isLast) return false
    if (ticks !== "") {
      shown.addTicks(ticks)
      waiting = waiting.slice(ticks.length)
      return true
    }
    if (!isLast && isBegunMark(waiting)) return false
    const mark = shown.isInCode() ? undefined : markAt(waiting, 0)
    if (mark === undefined || !isObeyed(mark)) pass(mark?.chars ?? 1)
    else obey(mark)
    return true
  }
  const close = (): boolean => {
    waiting = hidden.close(waiting)
    return !hidden.isOpen()
  }
  const run = (isLast: boolean) => {
    while (hidden.isOpen() ? close() : step(isLast));
  }
  return {
    take: (piece: string): Spoken => {
      waiting += piece
      run(false)
      return shown.take()
    },
    /** The rest, once nothing more comes. */
    end: (): Spoken => {
      run(true)
      hidden.give(waiting)
      return shown.take()
    },
    hasCall: () => hasCall
  }
}

/** The words of a whole text, and whether it has a call in it. Most texts have no mark. */
const spokenIn = (text: string, calls: "kept" | "left out") => {
  if (!MARK_BEGIN.test(text)) return { text, hasCall: false }
  const spoken = makeSpokenText(calls)
  const first = spoken.take(text)
  const rest = spoken.end()
  return { text: rest.isVoid ? rest.text : first.text + rest.text, hasCall: spoken.hasCall() }
}

/** A text without thoughts. */
export const withoutThoughts = (text: string): string => spokenIn(text, "kept").text

/** A text without thoughts and calls, and whether it has a call. */
export const spokenWords = (text: string) => spokenIn(text, "left out")
