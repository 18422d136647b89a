/** The values of a form as words, as a person sees them in its fields. */
import { type HtmlDocument, type HtmlElement, wordsIn } from "./htmlDocument.ts"

/** Choices of one field that are listed. */
const CHOICES_MAX = 20
/** Fields that show nothing, or nothing that may be read. */
const SILENT = new Set(["hidden", "password", "image", "file"])

const chosen = (select: HtmlElement): string => {
  const options = Array.from(select.querySelectorAll("option"))
  const marked = options.filter((option) => option.getAttribute("selected") !== null)
  const isList = select.getAttribute("multiple") !== null
  const words = (marked.length > 0 || isList ? marked : options.slice(0, 1)).map(wordsIn).join(", ")
  const all = options
    .slice(0, CHOICES_MAX)
    .map(wordsIn)
    .filter((each) => each !== "")
  const more = options.length > CHOICES_MAX ? ", …" : ""
  return all.length > 1 ? `[${words}] (choices: ${all.join(", ")}${more})` : `[${words}]`
}

const valueOf = (field: HtmlElement): string => {
  const tag = field.nodeName.toLowerCase()
  if (tag === "select") return chosen(field)
  if (tag === "textarea") return `[${(field.textContent ?? "").trim()}]`
  const type = (field.getAttribute("type") ?? "text").toLowerCase()
  if (SILENT.has(type)) return ""
  if (type === "checkbox" || type === "radio") return field.getAttribute("checked") === null ? "[ ]" : "[x]"
  const value = (field.getAttribute("value") ?? "").replace(/\s+/gu, " ").trim()
  return value === "" ? "" : `[${value}]`
}

/** Puts the values in the places of their fields. */
export const showValues = (document: HtmlDocument): void => {
  for (const field of Array.from(document.body.querySelectorAll("input, select, textarea"))) {
    const words = valueOf(field)
    if (words === "" || words === "[]") field.remove()
    else field.replaceWith(document.createTextNode(` ${words} `))
  }
}
