import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import {
  digestFiles,
  filesAt,
  hasTemplate,
  inputsOf,
  isBuilt,
  templateInputsOf,
  writeStamp
} from "#tools/BuildStamp.ts"

let root = ""
const dist = () => join(root, "dist")

const write = (path: string, text: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

const stamp = () =>
  writeStamp(dist(), {
    inputs: inputsOf(root),
    template_inputs: templateInputsOf(root),
    files: digestFiles(dist(), filesAt(dist(), "")),
    seconds: 1
  })

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "choir-stamp-"))
  write("src/choird/main.ts", "choird")
  write("src/choird/database/pglite.ts", "pglite")
  write("demo/demo.ts", "demo")
  write("tools/build.ts", "build")
  write("package-lock.json", "{}")
  write("dist/choird.js", "bundle")
  write("dist/choirctl/start.js", "chunk")
  write("dist/postgres-template.tar.gz", "template")
  stamp()
})

afterEach(() => rmSync(root, { recursive: true }))

describe("the stamp of a build", () => {
  it("counts what a build left as built", () => {
    assert.isTrue(isBuilt(dist(), inputsOf(root)))
    assert.isTrue(hasTemplate(dist(), templateInputsOf(root)))
  })

  const spoilt: ReadonlyArray<readonly [string, () => void]> = [
    ["without a stamp", () => rmSync(join(dist(), "build.json"))],
    ["with half a stamp", () => write("dist/build.json", '{"inputs": "')],
    ["with a bundle that is gone", () => rmSync(join(dist(), "choirctl/start.js"))],
    ["with a bundle of the same size but other bytes", () => write("dist/choird.js", "bundlE")]
  ]
  for (const [name, spoil] of spoilt) {
    it(`does not count a folder ${name}`, () => {
      spoil()
      assert.isFalse(isBuilt(dist(), inputsOf(root)))
    })
  }

  for (const path of ["src/choird/main.ts", "src/new.ts", "tools/build.ts", "package-lock.json", "schema/Event.ts"]) {
    it(`asks for a build after a change of ${path}`, () => {
      write(path, "changed")
      assert.isFalse(isBuilt(dist(), inputsOf(root)))
    })
  }

  it("asks for a build after other packages were installed", () => {
    write("node_modules/.package-lock.json", "{}")
    assert.isFalse(isBuilt(dist(), inputsOf(root)))
  })

  it("ignores a change of the demo, which no bundle contains", () => {
    write("demo/demo.ts", "changed")
    assert.isTrue(isBuilt(dist(), inputsOf(root)))
  })

  it("keeps the database template until its own sources change", () => {
    write("src/choird/main.ts", "changed")
    assert.isTrue(hasTemplate(dist(), templateInputsOf(root)))
    write("src/choird/database/pglite.ts", "changed")
    assert.isFalse(hasTemplate(dist(), templateInputsOf(root)))
    stamp()
    write("dist/postgres-template.tar.gz", "other")
    assert.isFalse(hasTemplate(dist(), templateInputsOf(root)))
  })
})
