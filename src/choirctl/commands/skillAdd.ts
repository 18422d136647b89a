/** choirctl skill add: a skill from elsewhere, which a person reads before it is added. */
import { existsSync, statSync } from "node:fs"
import { join, resolve } from "node:path"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { AgentId } from "#schema/Ids.ts"
import type { AddedSkill, SkillOffer, SkillSource, SkillTarget } from "#schema/SkillOffer.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { skillFolderFiles } from "#src/choirctl/home/skillFolderFiles.ts"
import { WELL_KNOWN, wellKnownSkill } from "#src/choirctl/home/wellKnownSkill.ts"
import { failed, usageError } from "#src/choirctl/terminal/failure.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { confirm, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { safeText } from "#src/choirctl/terminal/text.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { toolNames, toolsFlag } from "#src/choirctl/commands/flags/toolsFlag.ts"

/** A tool's name and the separators between several. */

/** A bare repository, as a server of git has it, and not a skill's folder. */
const isBareRepository = (path: string) => existsSync(join(path, "HEAD")) && existsSync(join(path, "objects"))

const isPlace = (source: string) => statSync(source, { throwIfNoEntry: false }) !== undefined

interface Options {
  readonly ref: Option.Option<string>
  readonly skill: Option.Option<string>
  readonly tools: Option.Option<string>
}

/** The origin that the argument means: a folder or file of this host, a site's index, or a git repository. */
const sourceOf = Effect.fnUntraced(function* (source: string, { ref, skill, tools }: Options) {
  const wanted = Option.getOrUndefined(skill)
  const given = Option.isNone(tools) ? {} : { tools: toolNames(tools) }
  const git = (url: string): SkillSource => ({
    type: "git",
    url,
    ref: Option.getOrElse(ref, () => "HEAD"),
    ...(wanted === undefined ? {} : { skill: wanted }),
    ...given
  })
  if (isPlace(source)) {
    const path = resolve(source)
    if (Option.isSome(ref) || isBareRepository(path)) return git(path)
    const chosen = wanted === undefined ? path : join(path, wanted)
    const files = yield* skillFolderFiles(chosen)
    return { type: "files", from: chosen, files, ...given } satisfies SkillSource
  }
  if (source.includes(WELL_KNOWN)) {
    if (Option.isSome(ref)) return yield* usageError("a site has no ref", "leave --ref out")
    return { type: "files", ...(yield* wellKnownSkill(source, wanted)), ...given } satisfies SkillSource
  }
  if (/^(?:https:|ssh:|[^/]*@?[^/]+:)/u.test(source)) return git(source)
  return yield* usageError(
    `there is no folder ${source}`,
    `name a folder, a git address, or https://<host>${WELL_KNOWN}`
  )
})

const addedText =
  (target: SkillTarget) =>
  ({ commit, name, repository }: AddedSkill): string => {
    const update = target.type === "agent" ? `choirctl agent update ${target.agent_id}` : "choirctl agent update-all"
    return `added ${name} to the ${repository}, commit ${commit.slice(0, 12)}; agents have it after: ${update}`
  }

/** The command that adds what was shown, with every option that was given. */
const againCommand = (
  source: string,
  { agent, digits, ref, skill, tools }: Options & { readonly agent: Option.Option<AgentId>; readonly digits: string }
): string =>
  [
    `choirctl skill add ${shellQuoted(source)}`,
    ...Object.entries({ agent, ref, skill, tools }).flatMap(([name, value]) =>
      Option.isNone(value) ? [] : [`--${name} ${shellQuoted(value.value)}`]
    ),
    `--digest ${digits} --yes`
  ].join(" ")

/** Agrees that the digest which was named is the one that was read. */
const requireDigest = (offer: SkillOffer, digest: Option.Option<string>) =>
  Option.isNone(digest) || offer.pin.sha256.startsWith(digest.value)
    ? Effect.void
    : failed(
        "CHANGED",
        `the skill has the digest ${offer.pin.sha256.slice(0, 16)}, not ${digest.value}`,
        "read it again, then decide again"
      )

export const add = Command.make(
  "add",
  {
    source: Argument.String("source").pipe(
      Argument.withDescription("A folder, a git address, or a site's /.well-known/agent-skills")
    ),
    agent: Flag.String("agent").pipe(
      Flag.withDescription("Add it to this agent's repository, instead of the global one"),
      Flag.withMetavar("<agent-id>"),
      Flag.withSchema(AgentId),
      Flag.optional
    ),
    ref: Flag.String("ref").pipe(Flag.withDescription("Branch, tag or commit of a git repository"), Flag.optional),
    skill: Flag.String("skill").pipe(
      Flag.withDescription("Name or folder of the skill, if there are several"),
      Flag.optional
    ),
    tools: toolsFlag,
    digest: Flag.String("digest").pipe(
      Flag.filter(
        (digits) => /^[0-9a-f]{8,64}$/u.test(digits),
        () => "--digest must be 8 to 64 hexadecimal digits"
      ),
      Flag.withDescription("Start of the digest that was shown; a skill with another digest is refused"),
      Flag.withMetavar("<hex>"),
      Flag.optional
    ),
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ agent, digest, source, yes, ...options }) {
    const target: SkillTarget = Option.match(agent, {
      onNone: () => ({ type: "global" }),
      onSome: (agent_id) => ({ type: "agent", agent_id })
    })
    const asked = { source: yield* sourceOf(source, options), target }
    const offer = yield* ask("skills", (choird) => choird.offer({ payload: asked }))
    yield* requireDigest(offer, digest)
    const { json } = yield* root
    const { interactive, note } = yield* Screen
    const about = json ? [] : [safeText(offer.text), ""]
    const command = againCommand(source, { ...options, agent, digits: offer.pin.sha256.slice(0, 16) })
    if (yes && Option.isNone(digest)) {
      for (const line of about) yield* note(line)
      // What nobody reads is added by the digest of what was read before.
      if (json || !interactive)
        return yield* usageError("--yes needs --digest without a terminal and with --json", command)
    }
    yield* confirm({ yes, about, ask: `Add ${offer.name}?`, command })
    const { sha256 } = offer.pin
    yield* print(yield* ask("skills", (choird) => choird.add({ payload: { ...asked, sha256 } })), addedText(target))
  })
).pipe(
  Command.withDescription("Add a skill from elsewhere: read it, show all of it, ask, and commit it"),
  Command.withExamples([
    { command: "choirctl skill add ./meeting-notes --agent agent-1" },
    { command: "choirctl skill add https://git.example.org/skills.git --skill meeting-notes" }
  ])
)
