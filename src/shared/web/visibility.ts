/**
 * Whether a reader of a page or a mail sees the words in an element, by its attributes and styles alone. What this misses, such as words behind a
 * picture, is text from outside all the same, with its label; it keeps the ways by which words are usually hidden from people and not from models.
 */
import type { Declarations, StyledElement, StyleSheet } from "./styleSheet.ts"

type Color = readonly [red: number, green: number, blue: number, alpha: number]

/** How the words in an element look, and in which state what is in it begins. */
export interface Look {
  /** Neither it nor anything in it is shown. */
  readonly isGone: boolean
  readonly isVisible: boolean
  readonly size_px: number
  /** `undefined` where it is not known, as of a picture behind the words. */
  readonly color: Color | undefined
  readonly background: Color | undefined
  /** Its line ends are shown as such. */
  readonly keepsLines: boolean
}

/** A document as mail programs and browsers begin one: black on white. */
export const FIRST_LOOK: Look = {
  isGone: false,
  isVisible: true,
  size_px: 16,
  color: [0, 0, 0, 1],
  background: [255, 255, 255, 1],
  keepsLines: false
}

/** Words of this size and smaller are a line of dots at most. */
const SIZE_PX_MIN = 2
const OPACITY_MIN = 0.1
/** The greatest difference of a colour that hardly anybody sees. */
const COLOR_DIFFERENCE_MIN = 24
/** How far outside of the window words are put by those who hide them. */
const FAR_PX = -200

const NAMED: Readonly<Record<string, Color>> = {
  transparent: [0, 0, 0, 0],
  white: [255, 255, 255, 1],
  black: [0, 0, 0, 1],
  snow: [255, 250, 250, 1],
  ivory: [255, 255, 240, 1],
  ghostwhite: [248, 248, 255, 1],
  whitesmoke: [245, 245, 245, 1],
  floralwhite: [255, 250, 240, 1],
  azure: [240, 255, 255, 1],
  mintcream: [245, 255, 250, 1],
  gray: [128, 128, 128, 1],
  grey: [128, 128, 128, 1],
  silver: [192, 192, 192, 1],
  red: [255, 0, 0, 1],
  green: [0, 128, 0, 1],
  blue: [0, 0, 255, 1],
  yellow: [255, 255, 0, 1],
  navy: [0, 0, 128, 1]
}

const fromHex = (digits: string): Color | undefined => {
  const all = digits.length <= 4 ? Array.from(digits, (digit) => digit + digit) : (digits.match(/../gu) ?? [])
  const [red, green, blue, alpha = 255] = all.map((pair) => Number.parseInt(pair, 16))
  return red === undefined || green === undefined || blue === undefined ? undefined : [red, green, blue, alpha / 255]
}

const share = (text: string, whole: number): number =>
  text.endsWith("%") ? (Number.parseFloat(text) / 100) * whole : Number.parseFloat(text)

const fromHsl = ([hue = 0, saturation = 0, light = 0]: ReadonlyArray<number>, alpha: number): Color => {
  const at = (n: number) => {
    const k = (n + hue / 30) % 12
    return 255 * (light - saturation * Math.min(light, 1 - light) * Math.max(-1, Math.min(k - 3, 9 - k, 1)))
  }
  return [at(0), at(8), at(4), alpha]
}

/** A colour; `undefined` for one that is not understood. */
const colorOf = (text: string): Color | undefined => {
  const hex = /^#?([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/u.exec(text)?.[1]
  if (hex !== undefined && (text.startsWith("#") || hex.length === 6)) return fromHex(hex)
  const called = /^(rgb|hsl)a?\(([^)]*)\)/u.exec(text)
  if (called === null) return Object.hasOwn(NAMED, text) ? NAMED[text] : undefined
  const [first = "", second = "", third = "", fourth = "1"] = (called[2] ?? "")
    .split(/[\s,/]+/u)
    .filter((part) => part !== "")
  const alpha = share(fourth, 1)
  if (called[1] === "hsl") return fromHsl([Number.parseFloat(first), share(second, 1), share(third, 1)], alpha)
  return [share(first, 255), share(second, 255), share(third, 255), alpha]
}

const isAlike = (one: Color, other: Color): boolean =>
  [0, 1, 2].every((at) => Math.abs((one[at] ?? 0) - (other[at] ?? 0)) <= COLOR_DIFFERENCE_MIN)

const UNITS: Readonly<Record<string, number>> = {
  px: 1,
  pt: 4 / 3,
  pc: 16,
  in: 96,
  cm: 37.8,
  mm: 3.78,
  rem: 16,
  vw: 12.8,
  vh: 8
}
const LENGTH = /(?:^|[\s(])(-?(?:\d+\.?\d*|\.\d+))(px|pt|pc|in|cm|mm|rem|em|ex|ch|vw|vh|%)?(?=$|[\s/,)])/u

/** A length in pixels. @param base_px what an em and a percentage are of. */
const pixels = (text: string | undefined, base_px: number): number | undefined => {
  const found = text === undefined ? null : LENGTH.exec(text)
  if (found === null) return undefined
  const [, digits = "", unit = ""] = found
  const value = Number.parseFloat(digits)
  if (unit === "%") return (value / 100) * base_px
  if (unit === "em" || unit === "ex" || unit === "ch") return value * base_px
  return value * (UNITS[unit] ?? 1)
}

const sizeOf = (said: Declarations, element: StyledElement, before: number): number => {
  const own = said.get("font-size") ?? said.get("font")
  const stated = pixels(own, before)
  if (stated !== undefined) return stated
  return element.tag === "font" && element.attribute("size") === "0" ? 0 : before
}

const backgroundOf = (said: Declarations, element: StyledElement, before: Color | undefined): Color | undefined => {
  const whole = said.get("background") ?? ""
  const image = said.get("background-image") ?? ""
  if (/url|gradient/u.test(`${whole} ${image}`) || element.attribute("background") !== undefined) return undefined
  const own = said.get("background-color") ?? (/^(?:#[0-9a-f]+|[a-z]+\([^)]*\)|[a-z]+)/u.exec(whole)?.[0] || undefined)
  const stated = own ?? element.attribute("bgcolor")?.trim().toLowerCase()
  if (stated === undefined || stated === "inherit" || stated === "none") return before
  const color = colorOf(stated)
  return color === undefined || color[3] >= OPACITY_MIN ? color : before
}

const foregroundOf = (said: Declarations, element: StyledElement, before: Color | undefined): Color | undefined => {
  // The letters are cut out of the background.
  if (/text/u.test(said.get("-webkit-background-clip") ?? said.get("background-clip") ?? "")) return undefined
  const named =
    element.tag === "font" ? element.attribute("color") : element.tag === "body" ? element.attribute("text") : undefined
  const stated = said.get("-webkit-text-fill-color") ?? said.get("color") ?? named?.trim().toLowerCase()
  return stated === undefined || stated === "inherit" ? before : colorOf(stated)
}

const linesOf = (said: Declarations, before: boolean): boolean => {
  const stated = said.get("white-space") ?? said.get("white-space-collapse")
  return stated === undefined || stated === "inherit" ? before : /^(?:pre|break-spaces|preserve)/u.test(stated)
}

const isFar = (said: Declarations, size_px: number): boolean => {
  const isMoved = /absolute|fixed|relative/u.test(said.get("position") ?? "")
  const edges = ["left", "top", "right", "bottom"].map((name) => (isMoved ? said.get(name) : undefined))
  const shifts = ["text-indent", "margin-left", "margin-top", "margin", "translate"].map((name) => said.get(name))
  const moved = /translate[xy]?\(([^)]*)\)/u.exec(said.get("transform") ?? "")?.[1]
  return [...edges, ...shifts, moved].some((each) => (pixels(each, size_px) ?? 0) <= FAR_PX)
}

const isClipped = (said: Declarations, size_px: number): boolean => {
  const clip = said.get("clip") ?? ""
  if (/^rect\((?:\s*[01](?:px)?[\s,]*){4}\)/u.test(clip)) return true
  if (/inset\(\s*(?:[5-9]\d|100)%|circle\(\s*0/u.test(said.get("clip-path") ?? "")) return true
  if (/scale[xy]?\(\s*0(?:\.0\d*)?\s*[,)]/u.test(said.get("transform") ?? "")) return true
  const overflow = said.get("overflow") ?? said.get("overflow-x") ?? said.get("overflow-y") ?? ""
  if (!/hidden|clip/u.test(overflow)) return false
  return ["max-height", "height", "max-width", "width"].some((name) => (pixels(said.get(name), size_px) ?? 2) <= 1)
}

const isGone = (said: Declarations, element: StyledElement, size_px: number): boolean => {
  if (element.attribute("hidden") !== undefined) return true
  if (element.tag === "dialog" && element.attribute("open") === undefined) return true
  // Outlook's own way, which is written where a text is for nobody's eyes.
  if (/^all\b/u.test(said.get("mso-hide") ?? "")) return true
  if (/^none\b/u.test(said.get("display") ?? "") || /^hidden\b/u.test(said.get("content-visibility") ?? "")) return true
  const opacity = said.get("opacity")
  if (opacity !== undefined && share(opacity, 1) < OPACITY_MIN) return true
  if (/opacity\(\s*0(?:\.0\d*)?%?\s*\)/u.test(said.get("filter") ?? "")) return true
  return isClipped(said, size_px) || isFar(said, size_px)
}

/** How the words in an element look where what is around it has the look `around`. */
export const lookOf = (element: StyledElement, around: Look, sheet: StyleSheet): Look => {
  const said = sheet.declarations(element)
  if (said.size === 0 && !HAS_LOOK.some((name) => element.attribute(name) !== undefined) && element.tag !== "dialog")
    return around
  const size_px = sizeOf(said, element, around.size_px)
  const visibility = said.get("visibility")
  return {
    isGone: around.isGone || isGone(said, element, size_px),
    isVisible:
      visibility === undefined || visibility === "inherit"
        ? around.isVisible
        : !/^(?:hidden|collapse)\b/u.test(visibility),
    size_px,
    color: foregroundOf(said, element, around.color),
    background: backgroundOf(said, element, around.background),
    keepsLines: linesOf(said, around.keepsLines)
  }
}

/** Attributes that change a look without a style. */
const HAS_LOOK = ["hidden", "bgcolor", "background", "color", "text", "size"] as const

/** Whether somebody who looks at it sees the words. */
export const isSeen = ({ background, color, isGone: gone, isVisible, size_px }: Look): boolean => {
  if (gone || !isVisible || size_px < SIZE_PX_MIN) return false
  if (color === undefined) return true
  return color[3] >= OPACITY_MIN && (background === undefined || !isAlike(color, background))
}
