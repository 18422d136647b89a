/**
 * Runs once before the tests: puts their temporary files on a disk in memory where root may mount one and there is room. Each database of
 * theirs is a thousand small files, and a third of the tests' processor time was the kernel's.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { heldByProjects } from "./heldByProjects.ts"

/** Free memory below which the files stay on the disk. */
const FREE_MIB_MIN = 8192
/** The most that the files may take; they take about one GiB. */
const SIZE_MIB_MAX = 4096
/** Short, since paths of sockets are. */
const NAME = /^choir-(\d+)$/u

const freeMib = (): number =>
  Number(/^MemAvailable:\s*(\d+) kB$/mu.exec(readFileSync("/proc/meminfo", "utf8"))?.[1] ?? 0) / 1024

const unmount = (folder: string): void => {
  try {
    execFileSync("umount", ["--lazy", folder], { stdio: "ignore" })
    rmdirSync(folder)
  } catch {
    // Not one of these disks.
  }
}

/** The disks of runs that were killed, also of one whose number this run has now. */
const clearLeft = (parent: string): void => {
  for (const name of readdirSync(parent)) {
    const [, pid] = NAME.exec(name) ?? []
    const isLeft = pid !== undefined && (Number(pid) === process.pid || !existsSync(`/proc/${pid}`))
    if (isLeft) unmount(join(parent, name))
  }
}

const mountDisk = (): string | undefined => {
  if (process.platform !== "linux" || process.getuid?.() !== 0 || freeMib() < FREE_MIB_MIN) return undefined
  const parent = tmpdir()
  clearLeft(parent)
  const folder = join(parent, `choir-${process.pid}`)
  mkdirSync(folder)
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${SIZE_MIB_MAX}m,mode=1777`, "choir-tests", folder])
  } catch {
    // A container without the right to mount: the files stay on its disk.
    rmdirSync(folder)
    return undefined
  }
  process.env["TMPDIR"] = folder
  return folder
}

export default async () => {
  const [, release] = await heldByProjects("the disk in memory", mountDisk, (folder) => {
    if (folder !== undefined) unmount(folder)
  })
  return release
}
