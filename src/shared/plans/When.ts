/** When a plan is due. */
export type When =
  | { readonly kind: "once"; readonly at_ms: number }
  /**
   * `schedule` in one form of English words: "every 20 minutes", "every hour", "every 3 days", "daily at 07:30", "weekdays at 08:00", "mon, thu at
   * 18:00", "monthly on 1 at 09:00".
   */
  | { readonly kind: "every"; readonly schedule: string }
  /** `schedule` as a cron expression of five fields. */
  | { readonly kind: "cron"; readonly schedule: string }
