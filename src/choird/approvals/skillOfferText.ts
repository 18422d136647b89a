/** The text of a skill from elsewhere that a person reads before it is added: what choird found first, then every file. Pure. */
import { isUtf8 } from "node:buffer"
import type { SkillReport } from "#schema/SkillCheck.ts"
import type { SkillPin } from "#schema/SkillOffer.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { toolsOf } from "#src/shared/image/contractProblems.ts"
import type { BundleFile, SkillBundle } from "#src/shared/image/skillBundle.ts"
import { reportLines } from "#src/shared/image/skillReportText.ts"
import { UNSEEN, unseenEscaped, visibleLine } from "./approvalText.ts"

/** Characters of the files' contents; what does not fit is named with its digest. */
const OFFER_CHARS_MAX = 64_000
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
export const addresses = (files: ReadonlyArray<BundleFile>): ReadonlyArray<string> => {
  const found = files.flatMap((file) =>
    [...(textOf(file) ?? "").matchAll(ADDRESS)].map(([, host = ""]) => host.toLowerCase())
  )
  return [...new Set(found)].sort().slice(0, ADDRESSES_MAX)
}

const shownFiles = (files: ReadonlyArray<BundleFile>): ReadonlyArray<string> => {
  let room = OFFER_CHARS_MAX
  return files.flatMap((file) => {
    const { bytes, executable, path } = file
    const head = `file ${visibleLine(path)}${executable ? ", executable" : ""}, ${bytes.length} bytes, sha256 ${sha256(bytes)}`
    const text = textOf(file)
    if (text === undefined || text.length > room) return [`${head}, not shown`]
    room -= text.length
    return [head, visible(text.trimEnd()), ""]
  })
}

const listed = (names: Iterable<string>) => [...names].map(visibleLine).join(", ") || "none"

export interface Offered {
  readonly bundle: SkillBundle
  readonly pin: SkillPin
  readonly report: SkillReport
  /** The repository that it would go to. */
  readonly repository: string
  /** The files that it replaces there. */
  readonly replaced: ReadonlyArray<string>
}

export const offerText = ({ bundle: { files, spec }, pin, replaced, report, repository }: Offered): string => {
  const { commit, from, ref, tree } = pin
  const tools = toolsOf(spec)
  return [
    `skill ${spec.name}, for the ${repository}`,
    `from: ${visibleLine(from)}${ref === undefined ? "" : `, ref ${ref}`}`,
    ...(commit === undefined ? [] : [`commit ${commit}, tree ${tree ?? ""}`]),
    `sha256 of all files: ${pin.sha256}`,
    `tools that it may use: ${listed(tools)}`,
    ...reportLines(report).map(visibleLine),
    `hosts that its text names: ${listed(addresses(files))}`,
    ...(replaced.length === 0 ? [] : [`It replaces ${replaced.length} files that are there: ${listed(replaced)}`]),
    "Its words are not checked: they are a model's orders.",
    "",
    ...shownFiles(files)
  ].join("\n")
}
