import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { offerProblem, offerText } from "#src/choird/skillimports/skillOfferText.ts"
import { judge } from "#src/choird/repos/skillIndex.ts"
import { skillSources } from "#src/choird/repos/Merge.ts"
import { readBundle } from "#src/choird/repos/skillBundle.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { capabilities } from "#src/choird/runtime/capabilities.ts"
import { bundleFiles } from "../../support/skillCorpus.ts"

const TEXT =
  "---\nname: notes\ndescription: Turn notes into minutes.\nallowed-tools: Read Write\n---\n\nWrite minutes.\n"

const NONE = { label: "the global repository", files: [] }
const sources = skillSources(NONE, NONE, capabilities("process"))

const bundleOf = (files: Readonly<Record<string, string>>) =>
  Result.getOrThrowWith(readBundle(bundleFiles(files), sources), (problems) => new Error(JSON.stringify(problems)))

const textOf = (files: Readonly<Record<string, string>>) => {
  const bundle = bundleOf(files)
  return offerText({
    bundle,
    pin: { from: "/tmp/skill", sha256: bundle.sha256 },
    report: judge([], sources.schemas, bundle.spec, bundle.written),
    repository: "global repository",
    replaced: [],
    names: []
  })
}

describe("the text of an offered skill", () => {
  it("shows SKILL.md first and whole, and counts the files for which there is no room", () => {
    const lines = textOf({ "A.md": "x".repeat(63_990), "B.md": "y".repeat(500), "SKILL.md": TEXT }).split("\n")
    const files = lines.filter((line) => line.startsWith("file "))
    assert.match(files[0] ?? "", /^file skills\/notes\/SKILL\.md, /u)
    assert.include(lines, "| Write minutes.")
    assert.match(files[1] ?? "", /^file skills\/notes\/A\.md, .*, not shown$/u)
    assert.include(lines.join("\n"), "files: 2 shown, and 1 more not shown: read them at the source.")
  })

  it("names the tools and what they can do, which is all that a skill without a contract is granted", () => {
    const lines = textOf({ "SKILL.md": TEXT.replace("Read Write", "Read Bash") }).split("\n")
    assert.include(lines, "tools that it may use: choir.fs.read, choir.exec")
    assert.include(lines, "capabilities: fs:read, fs:write, net, exec")
  })

  it("says so where a skill names no tools, and so may only read", () => {
    const unnamed = textOf({ "SKILL.md": TEXT.replace(/^allowed-tools.*\n/mu, "") })
    assert.match(
      unnamed,
      /^tools that it may use: choir\.fs\.read, choir\.fs\.find, choir\.fs\.search\. It names none, .*--tools/mu
    )
    assert.notInclude(textOf({ "SKILL.md": TEXT }), "It names none")
  })

  it("lets no file draw the head of another one, neither with a line nor with a line that a terminal wraps", () => {
    const forged = `file skills/notes/SKILL.md, ${TEXT.length} bytes, sha256 ${sha256(Buffer.from(TEXT))}`
    const text = textOf({
      "A.md": `a\n${forged}\n${" ".repeat(80)}${forged}\n${"\u3000".repeat(40)}${forged}\n`,
      "SKILL.md": TEXT.replace("Write minutes.", "Send all mail.")
    })
    const lines = text.split("\n")
    assert.notInclude(lines, forged)
    assert.lengthOf(
      lines.filter((line) => line.startsWith("file ")),
      2
    )
    const from = lines.findIndex((line) => line.startsWith("file "))
    for (const line of lines.slice(from)) assert.match(line, /^(?:file |\| |\|> |$)/u)
    for (const line of lines.filter((one) => one.startsWith("|"))) assert.isAtMost(line.length, 79)
  })

  it("is not made where SKILL.md is too long to be shown", () => {
    const bundle = bundleOf({ "SKILL.md": TEXT })
    const files = bundle.files.map((file) => ({ ...file, bytes: Buffer.from(`${TEXT}${"x".repeat(64_000)}`) }))
    assert.match(
      offerProblem({ ...bundle, files }) ?? "",
      /^skills\/notes\/SKILL\.md has \d+ characters, .*64000: move parts/u
    )
    assert.isUndefined(offerProblem(bundle))
  })

  it("counts the hosts that it does not name", () => {
    const hosts = Array.from({ length: 23 }, (_, at) => `https://h${String(at).padStart(2, "0")}.example/`)
    const text = textOf({ "SKILL.md": `${TEXT}${hosts.join(" ")}\n` })
    assert.match(text, /^hosts that its text names: h00\.example, .*h19\.example, and 3 more$/mu)
  })
})
