/**
 * Skills from elsewhere: read and judged for a person, and committed to a repository once the person named the digest of exactly these bytes.
 * Nothing of a skill runs here, and nothing of it is stored before.
 */
import { join } from "node:path"
import { Clock, Context, Effect, FileSystem, Layer, Result } from "effect"
import type { AddedSkill, AddSkill, OfferSkill, SkillOffer, SkillPin, SkillTarget } from "#schema/SkillOffer.ts"
import type { SkillReport } from "#schema/SkillCheck.ts"
import { skillModel } from "#src/choird/agents/skillModel.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Git } from "#src/choird/repos/Git.ts"
import { GitWork } from "#src/choird/repos/GitWork.ts"
import { merge, skillSources } from "#src/choird/repos/Merge.ts"
import { pushProblem, RepoAccess } from "#src/choird/repos/RepoAccess.ts"
import { repoLabel, type RepoOwner, Repos } from "#src/choird/repos/Repos.ts"
import { checkSource } from "#src/choird/repos/RepoSource.ts"
import { judge } from "#src/choird/repos/skillIndex.ts"
import { readPins, SKILL_LOCK_FILE, skillFiles, withPin } from "#src/choird/repos/skillPins.ts"
import type { HeldFile, RepoFile } from "#src/choird/repos/Tree.ts"
import { capabilities } from "#src/choird/runtime/capabilities.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { readBundle, type SkillBundle } from "#src/choird/repos/skillBundle.ts"
import { pricedBounds } from "#src/shared/image/skillBounds.ts"
import { reportLines } from "#src/shared/image/skillReportText.ts"
import { clashes } from "#src/choird/proposals/draftFiles.ts"
import { nameFacts } from "#src/choird/approvals/nameFacts.ts"
import { offerProblem, offerText } from "./skillOfferText.ts"
import { badSkill, repositoryRefused, SkillRefused } from "./SkillRefused.ts"
import { sourceFiles } from "./skillSourceFiles.ts"

export class SkillImports extends Context.Service<
  SkillImports,
  {
    /** Reads a skill at its source, and what it would be in the target. Changes nothing. */
    offer(asked: OfferSkill): Effect.Effect<SkillOffer, SkillRefused>
    /** Reads it again, and commits and pushes it if it has the digest that the person saw. */
    add(asked: AddSkill): Effect.Effect<AddedSkill, SkillRefused>
  }
>()("choir/choird/SkillImports") {
  static readonly layer = Layer.effect(
    SkillImports,
    Effect.suspend(() => make())
  )
}

/** The author of these commits: a person decided, at the operator's socket. */
const AUTHOR = { name: "Choir", email: "choir@localhost" }

const ownerOf = (target: SkillTarget): RepoOwner =>
  target.type === "global" ? { global: true } : { agent_id: target.agent_id }

/** The skill as it would be in the target, beside what is there now. */
interface Considered {
  readonly bundle: SkillBundle
  readonly pin: SkillPin
  readonly report: SkillReport
  readonly current: ReadonlyArray<RepoFile>
  /** Names that its own is easily taken for. */
  readonly names: ReadonlyArray<string>
}

const after = ({
  bundle,
  current,
  pin
}: Considered): Result.Result<
  { readonly files: ReadonlyArray<HeldFile>; readonly removed: ReadonlyArray<string> },
  string
> =>
  Result.flatMap(
    Result.mapError(readPins(current), (problem) => `${SKILL_LOCK_FILE}: ${problem}`),
    (pins) => {
      const lock = {
        path: SKILL_LOCK_FILE,
        executable: false,
        bytes: Buffer.from(withPin(pins, bundle.spec.name, pin))
      }
      const kept = new Set(bundle.files.map(({ path }) => path))
      const removed = skillFiles(bundle.spec.name, current).flatMap(({ path }) => (kept.has(path) ? [] : [path]))
      const gone = new Set(removed)
      const left = current.flatMap(({ path }) => (gone.has(path) ? [] : [path]))
      const [clash] = clashes([...left, ...kept])
      return clash === undefined
        ? Result.succeed({ files: [...bundle.files, lock], removed })
        : Result.fail(
            `${clash} would be below a file, which git cannot have: remove what is there, or choose another name for the skill`
          )
    }
  )

/** Folders of one call, which are gone after it. */
const workFolder = (home: string) => join(home, "repos", "work")

/** The configured repository of a target. */
const makeRepoOf = Effect.map(ConfigStore, (config) =>
  Effect.fnUntraced(function* (target: SkillTarget) {
    const { config: running } = yield* config.current
    if (target.type === "global") return running.global_repo
    const { agent_id } = target
    const agent = Object.hasOwn(running.agents, agent_id) ? running.agents[agent_id] : undefined
    if (agent !== undefined) return agent.repo
    return yield* new SkillRefused({
      kind: "UNKNOWN_AGENT",
      reason: `config.json has no agent ${agent_id}`,
      hint: "choirctl agent list names them"
    })
  })
)

/** Reads a skill and judges it beside the target's files as they are. */
const makeConsider = Effect.gen(function* () {
  const config = yield* ConfigStore
  const repos = yield* Repos
  const runtime = yield* ContainerRuntime
  const repoOf = yield* makeRepoOf
  const parent = workFolder(config.home)
  const context = Context.make(Git, yield* Git).pipe(Context.add(FileSystem.FileSystem, yield* FileSystem.FileSystem))

  const snapshot = (owner: RepoOwner, source: { readonly url: string; readonly ref: string }) =>
    Effect.mapError(repos.snapshot(owner, source), repositoryRefused)

  /** Refuses a skill that cannot be put there, or with which no image of the target could be built. */
  const requireFit = Effect.fnUntraced(function* (
    target: SkillTarget,
    global: ReadonlyArray<RepoFile>,
    considered: Considered
  ) {
    const change = yield* Effect.mapError(Effect.fromResult(after(considered)), (message) =>
      repositoryRefused({ message })
    )
    if (target.type === "global") return
    const { agent_id } = target
    const replaced = new Set([...change.files.map(({ path }) => path), ...change.removed])
    const plan = merge(
      { label: repoLabel({ global: true }), files: global },
      {
        label: repoLabel({ agent_id }),
        files: [...considered.current.filter(({ path }) => !replaced.has(path)), ...change.files]
      },
      capabilities(runtime.type)
    )
    if (Result.isFailure(plan)) return yield* badSkill(plan.failure.message)
  })

  return Effect.fnUntraced(function* ({ source, target }: OfferSkill) {
    const { config: running } = yield* config.current
    const repo = yield* repoOf(target)
    const { files, pin } = yield* Effect.provideContext(sourceFiles(source, parent), context)
    const { files: global } = yield* snapshot({ global: true }, running.global_repo)
    const current = target.type === "global" ? global : (yield* snapshot(ownerOf(target), repo)).files
    const sources = skillSources(
      { label: repoLabel({ global: true }), files: global },
      { label: repoLabel(ownerOf(target)), files: target.type === "global" ? [] : current },
      capabilities(runtime.type)
    )
    const read = readBundle(files, {
      ...sources,
      ...(source.tools === undefined ? {} : { allow: source.tools })
    })
    if (Result.isFailure(read))
      return yield* badSkill(read.failure.map(({ path, reason }) => `${path}: ${reason}`).join("\n"))
    const { sha256, spec, written } = read.success
    const unshown = offerProblem(read.success)
    if (unshown !== undefined) return yield* badSkill(unshown)
    const report = judge([...global, ...current], sources.schemas, spec, written)
    const model = target.type === "agent" ? skillModel(running, target.agent_id) : undefined
    if (report.grade === "rejected") return yield* badSkill(`the gate rejects it:\n${reportLines(report).join("\n")}`)
    const considered: Considered = {
      bundle: read.success,
      pin: { ...pin, sha256 },
      current,
      names: nameFacts(global, current, [...current, ...read.success.files]),
      report: { ...report, bounds: pricedBounds(report.bounds, model) }
    }
    yield* requireFit(target, global, considered)
    return considered
  })
})

/** Makes one commit on top of the branch as it is now, and pushes it. */
const makeCommit = Effect.gen(function* () {
  const access = yield* RepoAccess
  const { home } = yield* ConfigStore
  const fs = yield* FileSystem.FileSystem
  const git = yield* Git
  const work = yield* GitWork
  const repoOf = yield* makeRepoOf
  const parent = workFolder(home)
  return Effect.fnUntraced(function* (asked: AddSkill, considered: Considered) {
    const owner = ownerOf(asked.target)
    const checked = yield* Effect.fromResult(checkSource(yield* repoOf(asked.target)))
    const source = asked.target.type === "agent" ? yield* access(asked.target.agent_id, checked) : checked
    const problem = asked.target.type === "agent" ? pushProblem(source) : undefined
    if (problem !== undefined) return yield* repositoryRefused({ message: problem })
    yield* fs.makeDirectory(parent, { recursive: true, mode: 0o700 })
    const place = join(yield* fs.makeTempDirectoryScoped({ directory: parent, prefix: "skill-" }), "work")
    yield* work.begin(place)
    const head = yield* work.head(place, source)
    yield* git.fetch(place, source, { name: `refs/heads/${source.ref}`, commit: head })
    const current = yield* git.files(place, head, repoLabel(owner))
    const change = after({ ...considered, current })
    if (Result.isFailure(change)) return yield* repositoryRefused({ message: change.failure })
    const { name } = considered.bundle.spec
    const message = `Add the skill ${name}\n\nFrom ${considered.pin.from}${considered.pin.commit === undefined ? "" : ` at ${considered.pin.commit}`}, sha256 ${considered.pin.sha256}.\n`
    const date = new Date(yield* Clock.currentTimeMillis).toISOString()
    const made = yield* work.commit(place, { parent: head, ...change.success, message, identity: AUTHOR, date })
    yield* work.push(place, source, made)
    return { name, pin: considered.pin, repository: repoLabel(owner), commit: made }
  }, Effect.scoped)
})

const make = Effect.fnUntraced(function* () {
  const consider = yield* makeConsider
  const commit = yield* makeCommit

  const offer = Effect.fn("SkillImports.offer")(function* (asked: OfferSkill) {
    const { bundle, current, names, pin, report } = yield* consider(asked)
    const { name } = bundle.spec
    const repository = repoLabel(ownerOf(asked.target))
    const replaced = skillFiles(name, current).map(({ path }) => path)
    return { name, pin, report, text: offerText({ bundle, names, pin, report, repository, replaced }) }
  })

  const add = Effect.fn("SkillImports.add")(function* (asked: AddSkill) {
    const { sha256, ...rest } = asked
    const considered = yield* consider(rest)
    if (considered.pin.sha256 !== sha256)
      return yield* new SkillRefused({
        kind: "CHANGED",
        reason: `the skill changed since you reviewed it: its digest was ${sha256} and is now ${considered.pin.sha256}`,
        hint: "read it again, then decide again"
      })
    return yield* Effect.catchIf(
      commit(asked, considered),
      (error) => error._tag !== "SkillRefused",
      (error) => Effect.fail(repositoryRefused(error))
    )
  })

  return SkillImports.of({ offer, add })
})
