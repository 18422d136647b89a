/** The text of a skill from elsewhere that a person reads before it is added: what choird found first, then every file, its SKILL.md before all others. Pure. */
import { isUtf8 } from "node:buffer"
import type { SkillReport } from "#schema/SkillCheck.ts"
import type { SkillPin } from "#schema/SkillOffer.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { toolsOf } from "#src/shared/image/contractProblems.ts"
import type { BundleFile, SkillBundle } from "#src/choird/repos/skillBundle.ts"
import { namesNoTools, SKILL_FILE } from "#src/shared/image/skillFolder.ts"
import { reportLines } from "#src/shared/image/skillReportText.ts"
import { UNSEEN } from "#src/shared/text/unseenCharacters.ts"
import { unseenEscaped, visibleLine } from "#src/choird/approvals/approvalText.ts"

/** Characters of the files' contents; a file that does not fit is named with its digest. */
const OFFER_CHARS_MAX = 64_000
/** Columns of a line of a file. A longer one continues below with a prefix of its own, so that no terminal wraps it to a line that looks like choird's. */
const LINE_COLUMNS_MAX = 76
const TAB_COLUMNS = 8
/** From here on characters may be two columns wide. */
const WIDE_FROM = 0x1100
/** Addresses in its files that are named. */
const ADDRESSES_MAX = 20

const visible = (text: string) =>
  text.replaceAll(UNSEEN, (character) =>
    character === "\n" || character === "\t" ? character : unseenEscaped(character)
  )

const textOf = ({ bytes }: BundleFile): string | undefined =>
  isUtf8(bytes) && !bytes.includes(0) ? Buffer.from(bytes).toString("utf8") : undefined

const ADDRESS = /\b(?:https?|ssh|git|ftp):\/\/([A-Za-z0-9.-]{1,253})/gu

/** Hosts that its files name, since a skill may tell a model to fetch from there. */
const addresses = (files: ReadonlyArray<BundleFile>): ReadonlyArray<string> => {
  const found = files.flatMap((file) =>
    [...(textOf(file) ?? "").matchAll(ADDRESS)].map(([, host = ""]) => host.toLowerCase())
  )
  return [...new Set(found)].sort()
}

const columns = (character: string) => {
  if (character === "\t") return TAB_COLUMNS
  return (character.codePointAt(0) ?? 0) < WIDE_FROM ? 1 : 2
}

/** A line of a file with the prefix that no line of choird's has. */
const prefixed = (line: string): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  let piece = ""
  let width = 0
  for (const character of line) {
    if (width + columns(character) > LINE_COLUMNS_MAX) {
      pieces.push(piece)
      piece = ""
      width = 0
    }
    piece += character
    width += columns(character)
  }
  return [...pieces, piece].map((text, at) => `${at === 0 ? "| " : "|> "}${text}`)
}

const headOf = ({ bytes, executable, path }: BundleFile): string =>
  `file ${visibleLine(path)}${executable ? ", executable" : ""}, ${bytes.length} bytes, sha256 ${sha256(bytes)}`

/** The file that is the skill: its SKILL.md, or the one JSON file that there is. */
const mainOf = ({ files, spec }: SkillBundle): BundleFile | undefined =>
  files.find(({ path }) => path === `skills/${spec.name}/${SKILL_FILE}`) ?? files[0]

/** Why nobody can be asked about it: the skill's own orders would not be shown. */
export const offerProblem = (bundle: SkillBundle): string | undefined => {
  const main = mainOf(bundle)
  const text = main === undefined ? undefined : textOf(main)
  if (main === undefined || text === undefined) return "its SKILL.md is not valid text: save it as UTF-8"
  return text.length <= OFFER_CHARS_MAX
    ? undefined
    : `${visibleLine(main.path)} has ${text.length} characters, and a person is shown at most ${OFFER_CHARS_MAX}: move parts of it to files of their own`
}

/** Every file, the skill's own first: with its content as long as there is room, else by its digest alone. */
const shownFiles = (bundle: SkillBundle): ReadonlyArray<string> => {
  const main = mainOf(bundle)
  const files = [...(main === undefined ? [] : [main]), ...bundle.files.filter((file) => file !== main)]
  let room = OFFER_CHARS_MAX
  let unshown = 0
  const lines = files.flatMap((file) => {
    const text = textOf(file)
    if (text === undefined || text.length > room) {
      unshown += 1
      return [`${headOf(file)}, not shown`]
    }
    room -= text.length
    return [headOf(file), ...visible(text.trimEnd()).split("\n").flatMap(prefixed), ""]
  })
  const missing = unshown === 0 ? "" : `, and ${unshown} more not shown: read them at the source`
  return [`files: ${files.length - unshown} shown${missing}. Lines of a file begin with "|".`, "", ...lines]
}

const listed = (names: ReadonlyArray<string>) => names.map(visibleLine).join(", ") || "none"

const hostsText = (hosts: ReadonlyArray<string>): string => {
  const more = hosts.length - ADDRESSES_MAX
  return `${listed(hosts.slice(0, ADDRESSES_MAX))}${more > 0 ? `, and ${more} more` : ""}`
}

export interface Offered {
  readonly bundle: SkillBundle
  readonly pin: SkillPin
  readonly report: SkillReport
  /** The repository that it would go to. */
  readonly repository: string
  /** The files that it replaces there. */
  readonly replaced: ReadonlyArray<string>
  /** Names that its own is easily taken for, in words. */
  readonly names: ReadonlyArray<string>
}

/** The tools, and why they are so few where a model's work names none. */
const toolsText = ({ bundle: { files, spec }, report }: Pick<Offered, "bundle" | "report">): string => {
  const main = files.find(({ path }) => path === `skills/${spec.name}/${SKILL_FILE}`)
  const unnamed = report.execution_class === "probabilistic" && main !== undefined && namesNoTools(textOf(main) ?? "")
  const why = unnamed ? ". It names none, so that it may only read; --tools names others" : ""
  return `tools that it may use: ${listed([...toolsOf(spec)])}${why}`
}

export const offerText = ({ bundle, names, pin, replaced, report, repository }: Offered): string => {
  const { files, spec } = bundle
  const { commit, from, ref, tree } = pin
  return [
    `skill ${spec.name}, for the ${repository}`,
    `from: ${visibleLine(from)}${ref === undefined ? "" : `, ref ${ref}`}`,
    ...(commit === undefined ? [] : [`commit ${commit}, tree ${tree ?? ""}`]),
    `sha256 of all files: ${pin.sha256}`,
    toolsText({ bundle, report }),
    ...names,
    ...reportLines(report).map(visibleLine),
    `hosts that its text names: ${hostsText(addresses(files))}`,
    ...(replaced.length === 0 ? [] : [`It replaces ${replaced.length} files that are there: ${listed(replaced)}`]),
    "Its text is not checked: a model will follow it as instructions.",
    ...shownFiles(bundle)
  ].join("\n")
}
