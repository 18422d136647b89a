/**
 * Writes `dist/sbom.cdx.json`: the packages that the packed package is made of, and those that npm installs with it, from the lock file. Neither what
 * only the repository needs is there, nor what the build leaves out.
 */
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { installedPackages, lockedPackages, nameAt } from "./packedDependencies.ts"

interface Component {
  readonly "bom-ref": string
  readonly name: string
  readonly version: string
  readonly properties?: ReadonlyArray<object>
}

interface Bill {
  readonly components: ReadonlyArray<Component>
  readonly dependencies: ReadonlyArray<{ readonly ref: string; readonly dependsOn: ReadonlyArray<string> }>
}

const CONTENTS = join(packageFolder, "dist", "contents")

const wholeBill = (): Bill =>
  JSON.parse(
    execFileSync("npm", ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"], {
      cwd: packageFolder,
      encoding: "utf8",
      maxBuffer: 2 ** 26
    })
  ) as Bill

/** The packages whose code is in the programs, as `name@version`. */
const builtIn = (): ReadonlySet<string> => {
  const packages = lockedPackages()
  const places = readdirSync(CONTENTS).flatMap(
    (name) => JSON.parse(readFileSync(join(CONTENTS, name), "utf8")) as ReadonlyArray<string>
  )
  return new Set(places.map((place) => `${nameAt(place)}@${packages[place]?.version}`))
}

const write = () => {
  const bill = wholeBill()
  const inside = builtIn()
  const beside = new Set(installedPackages().map(({ name, version }) => `${name}@${version}`))
  const kept = bill.components.flatMap((component) => {
    const id = `${component.name}@${component.version}`
    const places = [...(inside.has(id) ? ["program"] : []), ...(beside.has(id) ? ["installed"] : [])]
    const properties = [...(component.properties ?? []), ...places.map((value) => ({ name: "choir:place", value }))]
    return places.length === 0 ? [] : [{ ...component, properties }]
  })
  const refs = new Set(kept.map((component) => component["bom-ref"]))
  const [root] = bill.dependencies
  const dependencies = bill.dependencies
    .filter((one) => one === root || refs.has(one.ref))
    .map(({ dependsOn, ref }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) }))
  const text = JSON.stringify({ ...bill, components: kept, dependencies }, undefined, 2)
  writeFileSync(join(packageFolder, "dist", "sbom.cdx.json"), `${text}\n`)
}

write()
