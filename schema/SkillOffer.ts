/** A skill of somebody else, as a person is shown it before it is added to a repository, and as it was added. */
import { Schema } from "effect"
import { AgentId } from "./Ids.ts"
import { CommitId } from "./Image.ts"
import { SkillName } from "./Skill.ts"
import { SkillReport } from "./SkillCheck.ts"

/** Files of one skill that is brought from elsewhere. */
export const SKILL_BUNDLE_FILES_MAX = 512
/** All of its files: fonts, schemas and templates of the best known skills fit. */
export const SKILL_BUNDLE_BYTES_MAX = 8 * 1024 * 1024
/** Files that a trial of a skill is given, twice: what it works on, and the other files of its folder. */
export const TRIED_FILES_MAX = 128
export const TRIED_BYTES_MAX = 512 * 1024
/** Characters of the text that says where it is from. */
const FROM_CHARS_MAX = 2048

const Text = Schema.NonEmptyString.check(Schema.isMaxLength(FROM_CHARS_MAX))

/** SHA-256 of paths, modes and contents together, as lowercase hex. */
export const BundleDigest = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u))

/** Names of tools for a skill that names none itself. */
const Tools = Schema.optionalKey(
  Schema.Array(Schema.String.check(Schema.isMaxLength(64))).check(Schema.isMaxLength(64))
)

/** A file of a skill, as choirctl read it. */
export const SkillFile = Schema.Struct({
  path: Schema.String.check(Schema.isMaxLength(512)),
  executable: Schema.Boolean,
  base64: Schema.String.check(Schema.isMaxLength(SKILL_BUNDLE_BYTES_MAX * 2))
})
export type SkillFile = typeof SkillFile.Type

/** The origin of a skill: a git repository that choird reads, or files that choirctl has read. */
export const SkillSource = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("git"),
    url: Text,
    /** A branch, a tag or a commit; `HEAD` is the default branch. */
    ref: Text,
    /** The skill's name or folder, where the repository has several. */
    skill: Schema.optionalKey(Text),
    tools: Tools
  }),
  Schema.Struct({
    type: Schema.Literal("files"),
    from: Text,
    files: Schema.Array(SkillFile).check(Schema.isMaxLength(SKILL_BUNDLE_FILES_MAX)),
    tools: Tools
  })
])
export type SkillSource = typeof SkillSource.Type

/** The repository that a skill is added to: the global one, or an agent's. */
export const SkillTarget = Schema.Union([
  Schema.Struct({ type: Schema.Literal("global") }),
  Schema.Struct({ type: Schema.Literal("agent"), agent_id: AgentId })
])
export type SkillTarget = typeof SkillTarget.Type

/** A repository's note of a skill that was added: its origin, and its digest at that moment. */
export const SkillPin = Schema.Struct({
  from: Text,
  ref: Schema.optionalKey(Text),
  commit: Schema.optionalKey(CommitId),
  /** Git's tree of its folder. */
  tree: Schema.optionalKey(CommitId),
  sha256: BundleDigest
})
export type SkillPin = typeof SkillPin.Type

/** The file `skills.lock.json` of a repository. */
export const SkillLock = Schema.Struct({ skills: Schema.Record(SkillName, SkillPin) })
export type SkillLock = typeof SkillLock.Type

/** A skill as a person is shown it, who then names the digest to add it. */
export const SkillOffer = Schema.Struct({
  name: SkillName,
  pin: SkillPin,
  report: SkillReport,
  /** Everything that the person reads: facts first, then every file. */
  text: Schema.String
})
export type SkillOffer = typeof SkillOffer.Type

export const OfferSkill = Schema.Struct({ source: SkillSource, target: SkillTarget })
export type OfferSkill = typeof OfferSkill.Type

/** `sha256` is that of the offer which the person saw. */
export const AddSkill = Schema.Struct({ ...OfferSkill.fields, sha256: BundleDigest })
export type AddSkill = typeof AddSkill.Type

/** The commit that has it now. */
export const AddedSkill = Schema.Struct({
  name: SkillName,
  pin: SkillPin,
  repository: Schema.String,
  commit: CommitId
})
export type AddedSkill = typeof AddedSkill.Type
