/** The secrets that differ between two readings of secrets.json: their names, never their values. */
import { Equal } from "effect"
import type { Config } from "#schema/Config.ts"
import { SecretName } from "#schema/Ids.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { type ClassifiedChange, RESTART_CHOIRD } from "./reloadClasses.ts"

export interface SecretChange {
  readonly name: SecretName
  readonly change: "added" | "changed" | "removed"
}

export const changedSecrets = (before: SecretsFile, after: SecretsFile): ReadonlyArray<SecretChange> => {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .sort()
    .map((name) => SecretName.make(name))
  return names.flatMap((name): ReadonlyArray<SecretChange> => {
    if (!Object.hasOwn(after, name)) return [{ name, change: "removed" }]
    if (!Object.hasOwn(before, name)) return [{ name, change: "added" }]
    return Equal.equals(before[name], after[name]) ? [] : [{ name, change: "changed" }]
  })
}

/** choird connects to its database once, with the credentials that it had then. */
const isOfDatabase = ({ postgres }: Config, name: SecretName) =>
  ("secret" in postgres && postgres.secret === name) || ("url_secret" in postgres && postgres.url_secret === name)

export const secretRows = (config: Config, changes: ReadonlyArray<SecretChange>): ReadonlyArray<ClassifiedChange> =>
  changes.map(({ change, name }) => ({
    path: `secrets.${name}`,
    change,
    restarts: [],
    ...(isOfDatabase(config, name)
      ? { class: "restart-required" as const, command: RESTART_CHOIRD }
      : { class: "hot-reload" as const, command: "choirctl secret apply" })
  }))
