/** A part of the user's environment outside of our own directories. */
type IntegrationPart = 'path' | 'docker-context' | 'kubeconfig' | 'autostart';

/** What became of one file of a user, the last time that it was looked at. */
export interface IntegrationOutcome {
  part: IntegrationPart;
  /** Absolute; on Windows the autostart entry is a key of the registry. */
  file: string;
  /**
   * `managed`: what we want to be there is. `clean`: nothing of ours is in it, as wanted. `left`: it was not touched, because what
   * is there is somebody else's choice. `failed`: it is not as wanted.
   */
  state: 'managed' | 'clean' | 'left' | 'failed';
  /** Of `left` and `failed`: a sentence without a full stop that says why. */
  message?: string;
}

/** The integration as the rest of the service sees it. */
export interface HostIntegration {
  /** Absent: it is at work. Otherwise a clause that says why nothing outside of our directories is touched. */
  readonly offBecause?: string;
  /** One per file, of the last time that something was done; empty while it is off or has not begun. */
  integrationOutcomes(): readonly IntegrationOutcome[];
}
