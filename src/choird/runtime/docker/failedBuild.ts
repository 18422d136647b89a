/** The error of a failed build for an operator: the instruction, its last output, and the fix. */
import type { RuntimeConfig } from "#schema/Config.ts"
import type { ProgramMissing } from "#src/choird/runtime/AgentCommand.ts"
import { ImageBuildFailed, type ImageSource } from "#src/choird/runtime/ContainerRuntime.ts"
import type { BuildBroke, ContextUnreadable } from "./runBuild.ts"
import type { DockerError } from "./DockerEngine.ts"

/** Messages of the engine or of a build's programs, and the fix for each. */
const CAUSES: ReadonlyArray<readonly [RegExp, string]> = [
  [
    /no space left on device|disk quota exceeded/iu,
    "Make room on the engine's disk: docker system df, docker image prune"
  ],
  [
    /pull access denied|manifest unknown|not found: manifest|no such host|registry/iu,
    "Check that FROM of Dockerfile.base names an image that the engine has or can pull: docker pull <image>"
  ],
  [/exit code 137|returned a non-zero code: 137/iu, "Give builds more memory: runtime.memory_mb in config.json"]
]
const OFFLINE = /resolve|network|connection|unreachable|unable to locate package|timed out/iu

export const failedBuild = (
  { agent_id, image_version }: ImageSource,
  error: BuildBroke | ContextUnreadable | DockerError | ProgramMissing,
  { build_network }: RuntimeConfig
): ImageBuildFailed => {
  const about = { agent_id, image_version }
  if (error._tag === "DockerError") {
    return new ImageBuildFailed({
      ...about,
      problem: `${error.what}: ${error.detail}`,
      fix: causeOf(error.detail) ?? error.fix
    })
  }
  if (error._tag !== "BuildBroke") {
    return new ImageBuildFailed({
      ...about,
      problem: error.message,
      fix: "Check that the installation and the home are complete"
    })
  }
  const { output, problem, step } = error
  const missing = MISSING.exec(step ?? "")?.[1]
  if (missing !== undefined) {
    const fix = "Let the Dockerfile put it there, or correct exec_path of its manifest"
    return new ImageBuildFailed({ ...about, problem: `the Dockerfiles leave no executable at ${missing}`, fix })
  }
  const said = `${output.join("\n")}\n${problem}`
  // The base is built with a network whatever the configuration says, and its steps fail for other reasons.
  const offline = build_network === "none" && OFFLINE.test(said)
  return new ImageBuildFailed({
    ...about,
    problem,
    ...(step === undefined ? {} : { step }),
    output,
    fix: offline
      ? 'An agent\'s Dockerfile is built without a network: set runtime.build_network to "open" in config.json, or install it in Dockerfile.base'
      : (causeOf(said) ?? "Correct the Dockerfile, commit, and build again")
  })
}

/** The program that checks whether the Dockerfiles made the executables of compiled tools. */
export const TEST_PROGRAM = "/usr/bin/test"
const MISSING = /^RUN \["\/usr\/bin\/test","-x","(.*)"\]$/u

const causeOf = (said: string) => CAUSES.find(([words]) => words.test(said))?.[1]
