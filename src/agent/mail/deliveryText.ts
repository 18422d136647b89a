/** The report of a mail server about the delivery of a mail (RFC 3464), in a sentence for each of its recipients. Pure. */

/** Recipients of one report that are listed. */
const RECIPIENTS_MAX = 20
const DIAGNOSTIC_CHARS_MAX = 300

type Fields = ReadonlyMap<string, string>

const fieldsOf = (group: string): Fields =>
  new Map(
    group
      .replaceAll(/\r?\n[ \t]+/gu, " ")
      .split(/\r?\n/u)
      .flatMap((line) => {
        const colon = line.indexOf(":")
        return colon === -1 ? [] : [[line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()] as const]
      })
  )

/** The value behind the kind of an address or of a diagnosis: `rfc822; a@b`. */
const plain = (value: string | undefined): string => (value ?? "").replace(/^[\w-]+\s*;\s*/u, "").trim()

const OUTCOMES: Readonly<Record<string, string>> = {
  failed: "could not be delivered to",
  delayed: "is not delivered yet to",
  delivered: "was delivered to",
  relayed: "was passed on to",
  expanded: "was passed on to several recipients of"
}

const sentence = (fields: Fields): ReadonlyArray<string> => {
  const recipient = plain(fields.get("original-recipient")) || plain(fields.get("final-recipient"))
  const outcome = OUTCOMES[(fields.get("action") ?? "").toLowerCase()]
  if (recipient === "" || outcome === undefined) return []
  const status = fields.get("status") ?? ""
  const why = plain(fields.get("diagnostic-code")).slice(0, DIAGNOSTIC_CHARS_MAX)
  const until = fields.get("will-retry-until") ?? ""
  return [
    `The mail ${outcome} ${recipient}${status === "" ? "" : ` (${status})`}${why === "" ? "" : `: ${why}`}.${until === "" ? "" : ` The server tries until ${until}.`}`
  ]
}

/** The sentences of a report; empty where it has none. */
export const deliveryText = (report: string): string =>
  report
    .split(/\r?\n[ \t]*\r?\n/u)
    .flatMap((group) => sentence(fieldsOf(group)))
    .slice(0, RECIPIENTS_MAX)
    .join("\n")
