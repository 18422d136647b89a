/**
 * Text from outside gets into a prompt by a tool's result, which has its label, or by `src/shared/text/foreignText.ts`. These lists are of all that
 * read bytes of others or show them; a new place fails until it is listed with what labels its text.
 */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { lastName, parsed, type SyntaxNode, walk } from "../support/syntax.ts"
import { ROOT, sourceOf } from "./source.ts"

const RESULT = "the result of the tool that asks, which the arbiter labels by the workspace's sources"
const IMAGE = "the image, which a person built and approved"
const CHOIRD = "choird's own words"
const NO_TEXT = "no text of it reaches a prompt"

/** The files of the agent that read files, start programs or ask servers, and what becomes of the text. */
const READERS: Readonly<Record<string, string>> = {
  "calls/ToolRunner.ts": NO_TEXT,
  "control/ControlPlane.ts": CHOIRD,
  "control/choirdConnections.ts": NO_TEXT,
  "git/GitAccess.ts": NO_TEXT,
  "git/SshAgent.ts": NO_TEXT,
  "git/Worktrees.ts": "plainName, and the arbiter labels names of files in a job's end",
  "git/credentials.ts": NO_TEXT,
  "git/worktreeGit.ts": "Worktrees.ts alone uses it",
  "image/ImageTexts.ts": IMAGE,
  "image/ImageTools.ts": IMAGE,
  "image/ProfileRegistry.ts": IMAGE,
  "image/SkillRegistry.ts": IMAGE,
  "mail/Draft.ts": NO_TEXT,
  "mail/imap.ts": "results name the senders of mails, failures the server: serverWords",
  "mail/sendMail.ts": "the codes of a reply by a pattern, failures by serverWords",
  "main.ts": IMAGE,
  "model/Llm.ts": "a provider writes every word of the model",
  "model/TokenCount.ts": NO_TEXT,
  "model/modelRequest.ts": "a provider writes every word of the model",
  "model/negotiate.ts": "a provider writes every word of the model",
  "model/prompt/Environment.ts": "plainName, and nothing where the workspace has a label",
  "outside/OutsideApi.ts": "results name the service, failures too: foreignText",
  "process/ProcessTable.ts": NO_TEXT,
  "process/startCommand.ts": NO_TEXT,
  "session/AnswerVoice.ts": NO_TEXT,
  "session/jobWorktree.ts": NO_TEXT,
  "tools/commandFiles.ts": NO_TEXT,
  "tools/coreTools.ts": "Worktrees.ts words what git says",
  "tools/emailReceive.ts": "results name the senders of mails",
  "tools/emailSend.ts": "failures name the server",
  "tools/exec.ts": RESULT,
  "tools/external.ts": RESULT,
  "tools/fsEdit.ts": RESULT,
  "tools/fsFind.ts": RESULT,
  "tools/fsRead.ts": RESULT,
  "tools/fsSearch.ts": RESULT,
  "tools/fsSend.ts": NO_TEXT,
  "tools/fsWrite.ts": "the result, which the arbiter labels where it shows lines of the file",
  "tools/ttsSpeak.ts": NO_TEXT,
  "trial/Trial.ts": NO_TEXT,
  "trial/TrialChannel.ts": CHOIRD,
  "trial/containedTrial.ts": IMAGE,
  "trial/toolTrial.ts": RESULT,
  "workspace/KeptFolders.ts": RESULT,
  "workspace/Pictures.ts": RESULT,
  "workspace/SkillFiles.ts": IMAGE,
  "workspace/Workspace.ts": RESULT,
  "workspace/likePath.ts": RESULT,
  "workspace/treeVersions.ts": NO_TEXT,
  "workspace/workspaceFiles.ts": RESULT
}

/** The files that show names or words from outside, by which functions. */
const SHOWERS: Readonly<Record<string, ReadonlyArray<string>>> = {
  "src/agent/git/Worktrees.ts": ["isPlainName", "oneLine", "plainName"],
  "src/agent/mail/MailAccount.ts": ["foreignText", "oneLine"],
  "src/agent/model/prompt/Environment.ts": ["isPlainName", "plainName"],
  "src/agent/model/prompt/Prompt.ts": ["labelOf"],
  "src/agent/model/prompt/notes.ts": ["labelOf"],
  "src/agent/model/prompt/promptMessages.ts": ["fileNameText"],
  "src/agent/model/prompt/toolText.ts": ["labelOf"],
  "src/agent/outside/OutsideApi.ts": ["foreignText", "oneLine"],
  "src/agent/tools/webSearch.ts": ["oneLine"],
  "src/choird/memory/eventWords.ts": ["fileNameText"],
  "src/choird/memory/memoryTools.ts": ["isPlainName"],
  "src/shared/model/Answer.ts": ["oneLine"],
  "src/shared/model/providerWords.ts": ["oneLine"],
  "src/shared/session/jobText.ts": ["fileNameText"]
}

/** Where a message has the role of the system, and what it says besides Choir's own words. */
const SYSTEM: Readonly<Record<string, string>> = {
  "src/agent/calls/SkillJudge.ts": "nothing",
  "src/agent/model/prompt/Prompt.ts": "the image's texts and skills, and the environment",
  "src/agent/session/shutdownNotice.ts": "nothing"
}

/** Modules that bring bytes of others into the agent, and parts of the agent that stand for them. */
const BRINGS =
  /^(?:node:(?:fs|fs\/promises|net|tls|http|https|dgram|child_process)|effect\/http|undici|.*\/(?:ProcessRunner|Workspace|mailClients|worktreeGit)\.ts)$/u

const sources = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .toSorted()
    .map((name) => `${folder}/${name}`)

const wordOf = (node: unknown): string =>
  typeof node === "object" && node !== null && "value" in node ? String(node.value) : ""

interface Imported {
  readonly from: string
  readonly names: ReadonlyArray<string>
}

const importsOf = (path: string): ReadonlyArray<Imported> => {
  const found: Array<Imported> = []
  walk(parsed(path, sourceOf(path)).tree, (node) => {
    if (node.type !== "ImportDeclaration" && node.type !== "ImportExpression") return
    if (node["importKind"] === "type") return
    const specifiers = (node["specifiers"] ?? []) as ReadonlyArray<SyntaxNode>
    const names = specifiers
      .filter((each) => each["importKind"] !== "type")
      .map((each) => lastName(each["imported"]) ?? "*")
    if (specifiers.length > 0 && names.length === 0) return
    found.push({ from: wordOf(node["source"]), names })
  })
  return found
}

const readsBytes = (path: string): boolean =>
  importsOf(path).some(({ from, names }) => BRINGS.test(from) || (from === "effect" && names.includes("FileSystem")))

describe("text from outside", () => {
  it("comes into the agent where the list says, each time with what labels it", () => {
    const found = sources("src/agent").filter(readsBytes)
    assert.deepStrictEqual(
      found.map((path) => path.slice("src/agent/".length)),
      Object.keys(READERS).toSorted()
    )
  })

  it("is shown outside of results by the files of the list, by one module", () => {
    const found = sources("src").flatMap((path) => {
      const names = importsOf(path).flatMap((each) => (each.from.endsWith("/text/foreignText.ts") ? each.names : []))
      return names.length === 0 ? [] : [[path, names.toSorted()] as const]
    })
    assert.deepStrictEqual(Object.fromEntries(found), SHOWERS)
  })

  it("is given the type of what prompts may show in that module alone", () => {
    const found = sources("src").filter((path) => /as ShownText\b/u.test(sourceOf(path)))
    assert.deepStrictEqual(found, ["src/shared/text/foreignText.ts"])
  })

  it("is in no message with the role of the system", () => {
    const found = sources("src/agent").filter((path) => sourceOf(path).includes('role: "system"'))
    assert.deepStrictEqual(found, Object.keys(SYSTEM))
    const environment = sourceOf("src/agent/model/prompt/Environment.ts")
    assert.lengthOf(
      [...environment.matchAll(/\bgit\.branch\b/gu)],
      2,
      "a branch is shown by another way than plainName"
    )
  })
})
