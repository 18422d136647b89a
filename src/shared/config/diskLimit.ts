import type { RetentionConfig } from "#schema/Config.ts"

const MIB = 1024 ** 2

/** The free space of a file system below which agents are paused (R50). */
export const diskLimit = (
  { disk_free_mb, disk_free_percent }: Pick<RetentionConfig, "disk_free_mb" | "disk_free_percent">,
  total_bytes: number
): number => Math.ceil(Math.max(disk_free_mb * MIB, (total_bytes * disk_free_percent) / 100))

/** The free files (inodes) of a file system below which agents are paused: the same share as of its bytes. */
export const fileLimit = ({ disk_free_percent }: Pick<RetentionConfig, "disk_free_percent">, total: number): number =>
  Math.ceil((total * disk_free_percent) / 100)

/** The fix for a disk that is almost full. */
export const DISK_FIX = "choirctl prune, or delete other files on this disk; paused agents then resume by themselves"
