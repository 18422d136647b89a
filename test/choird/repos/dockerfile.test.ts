import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import {
  DOCKERFILE_BYTES_MAX,
  DOCKERFILE_INSTRUCTIONS_MAX,
  dockerfileProblems,
  type DockerfileRole,
  onBase
} from "#src/choird/repos/dockerfile.ts"
import { merge } from "#src/choird/repos/Merge.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"

const found = (role: DockerfileRole, text: string | Uint8Array) =>
  dockerfileProblems(role, typeof text === "string" ? Buffer.from(text) : text).map(
    ({ line, reason }) => `${line}: ${reason}`
  )

/** Instructions after the one line that every agent's file has. */
const agent = (text: string) => `FROM choir-base\n${text}`

const ACCEPTED: ReadonlyArray<readonly [what: string, role: DockerfileRole, text: string]> = [
  ["the base alone", "agent", "FROM choir-base\n"],
  ["no line end at the end", "agent", "FROM choir-base"],
  [
    "comments, empty lines and blanks before instructions",
    "agent",
    "\n# what it is\n\n  \t# more\n  FROM choir-base\n"
  ],
  ["instructions in small letters", "agent", "from choir-base as tools\nrun true\n"],
  ["a package", "agent", agent("RUN apt-get update && apt-get install --yes jq && rm -rf /var/lib/apt/lists/*")],
  ["a continued instruction", "agent", agent("RUN apt-get update \\\n && apt-get install --yes \\  \n      jq\n")],
  ["a comment within a continued instruction", "agent", agent("RUN a \\\n# why\n   # and more \\\n  && b\n")],
  ["an empty line within a continued instruction", "agent", agent("RUN a \\\n\n  && b\n")],
  ["a comment that ends in a backslash", "agent", "# here \\\nFROM choir-base\n"],
  ["a directive after the first instruction, where it is a comment", "agent", agent("# syntax=docker/dockerfile:1\n")],
  ["two stages, one copied from by name", "agent", "FROM choir-base AS a\nFROM choir-base\nCOPY --from=a /x /y\n"],
  [
    "a stage from an earlier one, copied from by number",
    "agent",
    "FROM choir-base AS a\nFROM a\nCOPY --from=0 /x /y\n"
  ],
  ["files of the repository", "agent", agent("COPY tools/echo/ /build/echo/")],
  ["paths with blanks, as an array", "agent", agent('COPY ["a b", "/c d"]')],
  ["an owner", "agent", agent("COPY --chown=1000:1000 a /b")],
  ["an archive of the repository", "agent", agent("ADD --chown=root vendor/a-1.0.tar.gz /opt/")],
  ["variables of the build", "agent", "ARG A=1\nFROM choir-base\nARG B\nENV PATH=/opt/bin:$PATH\nRUN echo $A\n"],
  [
    "a label, a user, a folder and a shell",
    "agent",
    agent('LABEL a="b c"\nUSER 1000\nWORKDIR /x\nSHELL ["/bin/bash", "-c"]')
  ],
  ["a command as an array", "agent", agent('RUN ["/bin/sh", "--", "-c"]')],
  ["a here-string of bash", "agent", agent("RUN cat <<<hello")],
  ["flags of a program", "agent", agent("RUN true --mount=type=bind")],
  ["an image of a system", "base", "FROM debian:bookworm-slim\n"],
  ["an image by its digest", "base", `FROM registry.example:5000/os/debian:12@sha256:${"a".repeat(64)}\n`],
  [
    "other images as stages of the base",
    "base",
    "FROM debian:bookworm AS b\nFROM debian:bookworm-slim\nCOPY --from=b /x /y\n"
  ],
  ["how the base begins", "base", 'FROM debian:12\nENTRYPOINT ["/usr/bin/tini", "--"]\nCMD ["x"]\n']
]

const ROLE = "only FROM choir-base or an earlier stage"
const HEREDOC = "here-documents are refused"
const PLAIN = "ADD may add only files of the repository"
const STAGE = "--from must name an earlier stage of this file"

const REFUSED: ReadonlyArray<readonly [what: string, role: DockerfileRole, text: string, problem: string]> = [
  ["another image", "agent", "FROM debian\n", `1: ${ROLE}`],
  ["the base with a tag", "agent", "FROM choir-base:latest\n", `1: ${ROLE}`],
  ["the base by a path", "agent", "FROM docker.io/library/choir-base\n", `1: ${ROLE}`],
  ["the base in a variable", "agent", "ARG BASE=choir-base\nFROM ${BASE}\n", `2: ${ROLE}`],
  ["the base in quotes", "agent", 'FROM "choir-base"\n', `1: ${ROLE}`],
  ["nothing to begin with", "agent", "FROM scratch\n", `1: ${ROLE}`],
  ["another agent's image", "agent", "FROM choir-agent-b:0123456\n", `1: ${ROLE}`],
  ["a stage by its number", "agent", "FROM choir-base\nFROM 0\n", `2: ${ROLE}`],
  ["a later stage", "agent", "FROM b\nFROM choir-base AS b\n", `1: ${ROLE}`],
  ["another image in a second stage", "agent", "FROM choir-base\nFROM alpine AS b\n", `2: ${ROLE}`],
  ["a stage called like the base", "agent", "FROM choir-base AS choir-base\n", "1: a stage name starts with"],
  ["a stage in capitals", "agent", "FROM choir-base AS Build\n", "1: a stage name starts with"],
  ["a stage with a variable for its name", "agent", "FROM choir-base AS $X\n", "1: a stage name starts with"],
  ["two stages of one name", "agent", "FROM choir-base AS a\nFROM choir-base AS a\n", "2: there is a stage a already"],
  ["a platform", "agent", "FROM --platform=linux/amd64 choir-base\n", "1: the flag --platform is refused: remove it"],
  ["a FROM with more words", "agent", "FROM choir-base or debian\n", "1: write FROM <image>"],
  ["a FROM that ends in AS", "agent", "FROM choir-base AS\n", "1: write FROM <image>"],
  ["nothing", "agent", "", "0: it has no FROM"],
  ["comments alone", "agent", "# FROM choir-base\n", "0: it has no FROM"],
  ["an instruction before FROM", "agent", "RUN true\nFROM choir-base\n", "1: the first instruction is FROM"],
  [
    "another builder by a directive",
    "agent",
    "# syntax=docker/dockerfile:1\nFROM choir-base\n",
    "1: parser directives"
  ],
  ["a directive in other spelling", "agent", "\t#  SynTax = evil/frontend\nFROM choir-base\n", "1: parser directives"],
  ["another escape character", "agent", "# escape=`\nFROM choir-base\n", "1: parser directives"],
  ["checks by a directive", "agent", "# check=skip=all\nFROM choir-base\n", "1: parser directives"],
  ["a directive after a comment", "agent", "# x\n# syntax=evil\nFROM choir-base\n", "2: parser directives"],
  ["a mount", "agent", agent("RUN --mount=type=secret,id=x cat /run/secrets/x"), "2: the flag --mount is refused"],
  ["a network", "agent", agent("RUN --network=host true"), "2: the flag --network is refused"],
  ["more rights", "agent", agent("RUN --security=insecure true"), "2: the flag --security is refused"],
  [
    "a mount on a continued line",
    "agent",
    agent("RUN \\\n# x\n  --mount=type=bind true"),
    "2: the flag --mount is refused"
  ],
  ["a flag without a name", "agent", agent("RUN -- true"), "2: the flag -- is refused"],
  ["a mode of COPY", "agent", agent("COPY --chmod=777 a /b"), "2: the flag --chmod is refused: only --chown="],
  ["links of COPY", "agent", agent("COPY --link a /b"), "2: the flag --link is refused"],
  ["a check of ADD", "agent", agent("ADD --checksum=sha256:00 a /b"), "2: the flag --checksum is refused"],
  ["a flag in quotes", "agent", agent('COPY --fr"om"=alpine /a /b'), '2: the flag --fr"om" is refused'],
  ["a flag with an escape", "agent", agent("COPY --fro\\m=alpine /a /b"), "2: the flag --fro\\m is refused"],
  ["another image in COPY", "agent", agent("COPY --from=alpine /a /b"), `2: ${STAGE}`],
  ["another image by its digest in COPY", "agent", agent(`COPY --from=sha256:${"0".repeat(64)} /a /b`), `2: ${STAGE}`],
  ["its own stage", "agent", "FROM choir-base AS a\nCOPY --from=a /a /b\n", `2: ${STAGE}`],
  ["its own stage by number", "agent", agent("COPY --from=0 /a /b"), `2: ${STAGE}`],
  ["a stage that is not there", "agent", agent("COPY --from=7 /a /b"), `2: ${STAGE}`],
  ["a variable as stage", "agent", agent("COPY --from=$X /a /b"), "2: the flag --from is refused"],
  ["another image in COPY of the base", "base", "FROM debian\nCOPY --from=alpine /a /b\n", `2: ${STAGE}`],
  ["ADD of a url", "agent", agent("ADD https://example.org/x /x"), `2: ${PLAIN}`],
  ["ADD of a url in capitals", "agent", agent("ADD HTTPS://example.org/x /x"), `2: ${PLAIN}`],
  ["ADD of a url, as an array", "agent", agent('ADD ["http://example.org/x", "/x"]'), `2: ${PLAIN}`],
  ["ADD of a url in a variable", "agent", agent("ENV U=http://h/x\nADD $U /x"), `3: ${PLAIN}`],
  ["ADD of a url in quotes", "agent", agent('ADD "http":"//h/x" /x'), `2: ${PLAIN}`],
  ["ADD of a url with an escape", "agent", agent("ADD ht\\tp://h/x /x"), `2: ${PLAIN}`],
  ["ADD of a git repository", "agent", agent("ADD git@github.com:a/b.git /x"), `2: ${PLAIN}`],
  ["ADD of a repository at a host", "agent", agent("ADD github.com/a/b /x"), `2: ${PLAIN}`],
  ["ADD of a url in the base", "base", "FROM debian\nADD https://example.org/x /x\n", `2: ${PLAIN}`],
  ["a here-document in RUN", "agent", agent("RUN <<EOF\necho x\nEOF\n"), `2: ${HEREDOC}`],
  ["a here-document in COPY", "agent", agent("COPY <<a.txt /a.txt\nx\na.txt\n"), `2: ${HEREDOC}`],
  ["a here-document without tabs", "agent", agent("RUN cat <<-'E' >x"), `2: ${HEREDOC}`],
  ["ONBUILD", "agent", agent("ONBUILD RUN true"), "2: ONBUILD is refused: it would run"],
  ["ONBUILD in the base", "base", "FROM debian\nonbuild ADD http://x /x\n", "2: ONBUILD is refused: it would run"],
  ["another beginning", "agent", agent('ENTRYPOINT ["sh"]'), "2: ENTRYPOINT is refused: choird decides how"],
  ["arguments of the beginning", "agent", agent('CMD ["sh"]'), "2: CMD is refused: choird decides how"],
  ["a volume", "agent", agent("VOLUME /data"), "2: VOLUME is refused: an agent has its workspace"],
  ["a volume of the base", "base", "FROM debian\nVOLUME /data\n", "2: VOLUME is refused"],
  ["a port", "agent", agent("EXPOSE 80"), "2: EXPOSE is refused"],
  ["a health check", "agent", agent("HEALTHCHECK CMD true"), "2: HEALTHCHECK is refused"],
  ["another signal", "agent", agent("STOPSIGNAL SIGKILL"), "2: STOPSIGNAL is refused"],
  ["a maintainer", "agent", agent("MAINTAINER me"), "2: MAINTAINER is refused: it is deprecated"],
  ["an unknown instruction", "agent", agent("INCLUDE other"), "2: INCLUDE is not an instruction"],
  ["an object's property", "agent", agent("constructor x"), "2: CONSTRUCTOR is not an instruction"],
  ["text without an instruction", "agent", agent("&& apt-get install x"), "2: it does not begin with an instruction"],
  ["an instruction without a word", "agent", agent("RUN\n"), "2: RUN is empty"],
  ["a copy without a destination", "agent", agent("COPY a"), "2: write a source and a destination"],
  ["an array that is none", "agent", agent('COPY ["a", /b]'), "2: a list of paths is a JSON array"],
  ["an end within an instruction", "agent", agent("RUN a \\\n"), "2: the file ends within this instruction"],
  ["two backslashes at an end", "agent", agent("RUN a \\\\\nRUN b\n"), "2: it ends in two backslashes"],
  ["carriage returns", "agent", "FROM choir-base\r\nRUN true\r\n", "1: it ends in a carriage return"],
  ["a hidden character", "agent", agent("RUN true\u200B"), "2: it holds a control or invisible"],
  ["text that runs backwards", "agent", agent("RUN echo \u202Eevil"), "2: it holds a control or invisible"],
  ["a mark at the beginning", "agent", "\uFEFF# syntax=x\nFROM choir-base\n", "1: it holds a control or invisible"],
  ["a blank that is none", "agent", agent("\u00A0ADD http://x /x"), "2: it holds a control or invisible"],
  ["an image in a variable", "base", "ARG V=12\nFROM debian:$V\n", "2: write the name of an image in full"],
  ["the base of itself", "base", "FROM choir-base\n", "1: write the name of an image in full"],
  ["an image with a scheme", "base", "FROM https://example.org/x\n", "1: write the name of an image in full"]
]

describe("dockerfile", () => {
  for (const [what, role, text] of ACCEPTED) {
    it(`accepts ${what} (D24)`, () => assert.deepStrictEqual(found(role, text), []))
  }

  for (const [what, role, text, problem] of REFUSED) {
    it(`refuses ${what} (D24)`, () => {
      const [first = "nothing"] = found(role, text)
      assert.strictEqual(first.slice(0, problem.length), problem)
    })
  }

  it("accepts the starters", () => {
    const starter = (...path: ReadonlyArray<string>) => readFileSync(join(packageFolder, "docker", ...path))
    assert.deepStrictEqual(found("base", starter("starter", "Dockerfile.base")), [])
    assert.deepStrictEqual(found("agent", starter("agent-starter", "Dockerfile")), [])
  })

  it("refuses what is too large, has too many instructions, or is not text", () => {
    const many = agent("RUN true\n".repeat(DOCKERFILE_INSTRUCTIONS_MAX))
    assert.match(found("agent", many)[0] ?? "", /^0: it has more than \d+ instructions/u)
    assert.match(found("agent", agent(`# ${"x".repeat(DOCKERFILE_BYTES_MAX)}`))[0] ?? "", /^0: it is larger than/u)
    assert.deepStrictEqual(found("agent", Buffer.from([0x46, 0xff])), ["0: it is not UTF-8"])
  })

  it("reports every problem with its line", () => {
    const text = "# syntax=x\nFROM debian\nRUN a \\\n  b\nONBUILD RUN c\nADD http://x /x\n"
    assert.deepStrictEqual(
      found("agent", text).map((line) => line.split(":")[0]),
      ["1", "2", "5", "6"]
    )
  })

  it("puts the base's id into each FROM that names it and leaves every other line where it was", () => {
    const text =
      "# FROM choir-base\nARG A=1\nfrom \\\n  choir-base AS build\nRUN a \\\n b\nFROM choir-base\nFROM build\n"
    assert.strictEqual(
      onBase(text, "sha256:0a"),
      "# FROM choir-base\nARG A=1\nFROM sha256:0a AS build\n\nRUN a \\\n b\nFROM sha256:0a\nFROM build\n"
    )
  })

  it("is asked when configurations are loaded and images built, with the repository and the line", () => {
    const file = (path: string, text: string) => ({ path, executable: false, bytes: Buffer.from(text) })
    const identity = ["USER.md", "SOUL.md", "SOUL-CORE.md"].map((name) => file(`identity/${name}`, "x"))
    const merged = merge(
      { label: "global", files: [...identity, file("Dockerfile.base", "FROM choir-base\n"), file("Dockerfile", "?")] },
      { label: "agent", files: [file("Dockerfile", "FROM choir-base\nRUN --mount=type=ssh true\n")] }
    )
    assert.deepStrictEqual(
      Result.isFailure(merged) ? merged.failure.problems.map(({ path, repo }) => [repo, path]) : [],
      [
        ["global", "Dockerfile.base:1"],
        ["agent", "Dockerfile:2"]
      ]
    )
  })
})
