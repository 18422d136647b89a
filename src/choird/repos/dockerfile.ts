/**
 * The rules for Dockerfiles (D24). A file is parsed like the engine's classic builder does, and syntax that builders parse differently is
 * refused, so that the checked file is the built one. Pure: bytes in, problems with their lines out.
 */
import { isUtf8 } from "node:buffer"
import { Option, Schema } from "effect"

/** A Dockerfile, shorter than the longest line that a builder reads. */
export const DOCKERFILE_BYTES_MAX = 32 * 1024
/** Instructions of a Dockerfile; an image has at most 125 layers, and the base has some of them. */
export const DOCKERFILE_INSTRUCTIONS_MAX = 80

/** `base` is the operator's Dockerfile.base of the global repository, `agent` the Dockerfile of an agent's own. */
export type DockerfileRole = "base" | "agent"

/** The path of each in its repository. */
export const DOCKERFILES: Readonly<Record<DockerfileRole, string>> = { base: "Dockerfile.base", agent: "Dockerfile" }

/** `line` counts from 1; 0 is the file as a whole. */
export interface DockerfileProblem {
  readonly line: number
  readonly reason: string
}

/** An instruction with its continued lines joined; `line` and `last` are where it begins and ends. */
interface Instruction {
  readonly keyword: string
  readonly rest: string
  readonly line: number
  readonly last: number
}

interface Parsed {
  readonly instructions: ReadonlyArray<Instruction>
  readonly problems: ReadonlyArray<DockerfileProblem>
}

/** The image that `FROM` of an agent's Dockerfile names. */
export const BASE_NAME = "choir-base"

const textProblems = (text: string): ReadonlyArray<DockerfileProblem> =>
  text.split("\n").flatMap((content, index) => {
    const line = index + 1
    if (content.includes("\r")) return [{ line, reason: "it ends in a carriage return: write LF line ends" }]
    // Builders disagree on which of these are blanks, and people do not see them.
    return /[^\P{C}\t]|[^\P{Z} ]/u.test(content)
      ? [{ line, reason: "it holds a control or invisible character: remove it" }]
      : []
  })

/** Directives, which choose another builder or escape character; they come before the first instruction. */
const DIRECTIVE = /^\s*#\s*(?:syntax|escape|check)\s*=/iu
const COMMENT = /^\s*#/u
const CONTINUED = /\\[ \t]*$/u
const INSTRUCTION = /^([A-Za-z]+)(?:[ \t]+(.*))?$/u

/**
 * Parses instructions. Comments and empty lines do not end a continued instruction. A line that ends in two backslashes is continued by
 * some builders and not by others.
 */
const parse = (text: string): Parsed => {
  const lines = text.split("\n")
  const instructions: Array<Instruction> = []
  const problems: Array<DockerfileProblem> = []
  for (let at = 0; at < lines.length; at += 1) {
    const first = lines[at] ?? ""
    const line = at + 1
    if (COMMENT.test(first)) {
      if (instructions.length === 0 && DIRECTIVE.test(first))
        problems.push({ line, reason: "parser directives (syntax, escape, check) are refused: remove the line" })
      continue
    }
    if (first.trim() === "") continue
    let joined = first.trimStart()
    while (CONTINUED.test(joined)) {
      if (/\\\\[ \t]*$/u.test(joined)) problems.push({ line: at + 1, reason: "it ends in two backslashes: write one" })
      at += 1
      while (at < lines.length && (COMMENT.test(lines[at] ?? "") || (lines[at] ?? "").trim() === "")) at += 1
      if (at >= lines.length)
        problems.push({ line, reason: "the file ends within this instruction: remove the last \\" })
      joined = joined.replace(CONTINUED, "") + (lines[at] ?? "")
    }
    const [, keyword, rest = ""] = INSTRUCTION.exec(joined.trimEnd()) ?? []
    if (keyword === undefined)
      problems.push({ line, reason: "it does not begin with an instruction, such as RUN or COPY" })
    else instructions.push({ keyword: keyword.toUpperCase(), rest: rest.trim(), line, last: at + 1 })
  }
  return { instructions, problems }
}

const STARTS = "choird decides how an agent starts and stops: remove it"
/** Instructions that are always refused, with the alternative. */
const REFUSED: Readonly<Record<string, string>> = {
  CMD: STARTS,
  ENTRYPOINT: STARTS,
  EXPOSE: "an agent does not listen on ports: remove it",
  HEALTHCHECK: "choird itself watches over agents: remove it",
  MAINTAINER: "it is deprecated: write LABEL maintainer=<name>",
  ONBUILD: "it would run within the builds of other images: write the instruction itself",
  STOPSIGNAL: STARTS,
  VOLUME: "an agent has its workspace and no other volume: use RUN mkdir"
}
const ALLOWED = new Set(["ADD", "ARG", "COPY", "ENV", "FROM", "LABEL", "RUN", "SHELL", "USER", "WORKDIR"])
/** Only the base says how its programs begin. */
const ALLOWED_IN_BASE = new Set([...ALLOWED, "CMD", "ENTRYPOINT"])
/** Flags with a value; every other flag belongs to builders that are not used, and could mount or reach something. */
const FLAGS: Readonly<Record<string, ReadonlyArray<string>>> = { ADD: ["chown"], COPY: ["chown", "from"] }
const FLAG = /^--([a-z]+)=([A-Za-z0-9._:-]+)$/u
const STAGE = /^[a-z][a-z0-9_.-]{0,63}$/u
const IMAGE = /^[a-z0-9][a-z0-9._/-]*(?::[0-9]+\/[a-z0-9._/-]+)?(?::[A-Za-z0-9._-]+)?(?:@sha256:[0-9a-f]{64})?$/u
/** A source of ADD that cannot become a url, whatever a builder makes of variables and quotes. */
const PLAIN_SOURCE = /^[A-Za-z0-9._/*?+@,=-]+$/u

interface Reading {
  readonly role: DockerfileRole
  /** Names of the stages so far, in order; undefined for one without a name. */
  readonly stages: ReadonlyArray<string | undefined>
}

const words = (text: string) => text.split(/[ \t]+/u).filter((word) => word !== "")

const wordsOfArray = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Array(Schema.String)))

const fromProblem = ({ role, stages }: Reading, rest: string): string | undefined => {
  const [image = "", as, name, ...more] = words(rest)
  if (more.length > 0 || (as !== undefined && (as.toUpperCase() !== "AS" || name === undefined)))
    return "write FROM <image>, or FROM <image> AS <name>"
  if (name !== undefined && (!STAGE.test(name) || name === BASE_NAME || name === "scratch"))
    return "a stage name starts with a-z, has only a-z, 0-9, '_', '.' and '-', and is not that of an image"
  if (name !== undefined && stages.includes(name)) return `there is a stage ${name} already: choose another name`
  if (stages.includes(image)) return undefined
  if (role === "agent") {
    return image === BASE_NAME
      ? undefined
      : `only FROM ${BASE_NAME} or an earlier stage: put other systems into Dockerfile.base of the global repository`
  }
  return IMAGE.test(image) && image !== BASE_NAME
    ? undefined
    : "write the name of an image in full, without variables, such as debian:bookworm-slim"
}

const flagProblem = ({ stages }: Reading, keyword: string, flag: string): string | undefined => {
  const [, name, value = ""] = FLAG.exec(flag) ?? []
  if (name === undefined || FLAGS[keyword]?.includes(name) !== true) {
    const allowed = (FLAGS[keyword] ?? []).map((each) => `--${each}=`).join(" and ")
    return `the flag ${flag.split("=")[0]} is refused${allowed === "" ? ": remove it" : `: only ${allowed} may be used`}`
  }
  if (name !== "from" || stages.slice(0, -1).includes(value)) return undefined
  return /^[0-9]{1,3}$/u.test(value) && Number(value) < stages.length - 1
    ? undefined
    : "--from must name an earlier stage of this file, not an image: write FROM <image> AS <name> first"
}

const copyProblem = (keyword: string, rest: string): string | undefined => {
  const paths = rest.startsWith("[") ? Option.getOrUndefined(wordsOfArray(rest)) : words(rest)
  if (paths === undefined) return "a list of paths is a JSON array of strings"
  if (paths.length < 2) return "write a source and a destination"
  if (keyword === "COPY") return undefined
  return paths.every((path) => PLAIN_SOURCE.test(path) && !/^(?:git@|github\.com\/)/u.test(path))
    ? undefined
    : "ADD may add only files of the repository, with plain names: download with RUN, or use COPY"
}

const ruleProblem = (reading: Reading, { keyword, rest }: Instruction): string | undefined => {
  if (!(reading.role === "base" ? ALLOWED_IN_BASE : ALLOWED).has(keyword)) {
    const why = Object.hasOwn(REFUSED, keyword) ? REFUSED[keyword] : undefined
    return why === undefined ? `${keyword.slice(0, 20)} is not an instruction` : `${keyword} is refused: ${why}`
  }
  if (rest === "") return `${keyword} is empty: complete or remove it`
  let args = rest
  for (let flag = /^--[^ \t]*/u.exec(args); flag !== null; flag = /^--[^ \t]*/u.exec(args)) {
    const problem = flagProblem(reading, keyword, flag[0])
    if (problem !== undefined) return problem
    args = args.slice(flag[0].length).trimStart()
  }
  if (["ADD", "COPY", "RUN"].includes(keyword) && /(?:^|[^<])<<(?!<)/u.test(args))
    return "here-documents are refused, since the builder does not support them: put the text into a file of the repository"
  if (keyword === "FROM") return fromProblem(reading, args)
  return keyword === "COPY" || keyword === "ADD" ? copyProblem(keyword, args) : undefined
}

/** Every instruction by the rules of its place. */
const ruleProblems = (role: DockerfileRole, instructions: ReadonlyArray<Instruction>) => {
  const problems: Array<DockerfileProblem> = []
  const stages: Array<string | undefined> = []
  for (const instruction of instructions) {
    const { keyword, line, rest } = instruction
    if (stages.length === 0 && keyword !== "FROM" && keyword !== "ARG")
      problems.push({ line, reason: "the first instruction is FROM" })
    // A stage may copy from the ones before it; the list then ends with the one that is being made.
    const reason = ruleProblem({ role, stages }, instruction)
    if (reason !== undefined) problems.push({ line, reason })
    if (keyword === "FROM") stages.push(words(rest)[2])
  }
  if (stages.length === 0) problems.push({ line: 0, reason: "it has no FROM" })
  return problems
}

/** All reasons not to build a Dockerfile, in the order of its lines; empty when it may be built. */
export const dockerfileProblems = (role: DockerfileRole, bytes: Uint8Array): ReadonlyArray<DockerfileProblem> => {
  if (bytes.length > DOCKERFILE_BYTES_MAX)
    return [{ line: 0, reason: `it is larger than ${DOCKERFILE_BYTES_MAX} bytes` }]
  if (!isUtf8(bytes)) return [{ line: 0, reason: "it is not UTF-8" }]
  const text = Buffer.from(bytes).toString("utf8")
  const unreadable = textProblems(text)
  if (unreadable.length > 0) return unreadable
  const { instructions, problems } = parse(text)
  if (instructions.length > DOCKERFILE_INSTRUCTIONS_MAX)
    return [{ line: 0, reason: `it has more than ${DOCKERFILE_INSTRUCTIONS_MAX} instructions: join RUN lines with &&` }]
  return [...problems, ...ruleProblems(role, instructions)].toSorted((one, other) => one.line - other.line)
}

/** An agent's checked Dockerfile with `image` as its base. Line numbers stay the same. */
export const onBase = (text: string, image: string): string => {
  const lines = text.split("\n")
  for (const { keyword, last, line, rest } of parse(text).instructions) {
    const [from, ...as] = words(rest)
    if (keyword !== "FROM" || from !== BASE_NAME) continue
    lines.fill("", line - 1, last)
    lines[line - 1] = ["FROM", image, ...as].join(" ")
  }
  return lines.join("\n")
}
