import type { RetentionConfig } from "#schema/Retention.ts"

const MIB = 1024 ** 2
/** The most that the share of a disk comes to: of a large one, 5 % would be more than anything of Choir grows by between two looks. */
const SHARE_BYTES_MAX = 5 * 1024 ** 3

/** The free space of a file system below which agents are paused (R50). */
export const diskLimit = (
  { disk_free_mb, disk_free_percent }: Pick<RetentionConfig, "disk_free_mb" | "disk_free_percent">,
  total_bytes: number
): number => Math.ceil(Math.max(disk_free_mb * MIB, Math.min((total_bytes * disk_free_percent) / 100, SHARE_BYTES_MAX)))

/** The free files (inodes) of a file system below which agents are paused: the same share as of its bytes. */
export const fileLimit = ({ disk_free_percent }: Pick<RetentionConfig, "disk_free_percent">, total: number): number =>
  Math.ceil((total * disk_free_percent) / 100)

/** The fix for a disk that is almost full. */
export const DISK_FIX = "choirctl prune, or delete other files on this disk; paused agents then resume by themselves"

/** Whether a file system has a number of files: one that makes room for them as it needs it reports none, or a number that means no limit. Pure. */
export const countsFiles = ({ ffree, files }: { readonly ffree: number; readonly files: number }): boolean =>
  files > 0 && Number.isSafeInteger(files) && ffree <= files
