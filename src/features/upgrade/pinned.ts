/** What the build of a release has put into the file. */
export interface PinnedReleases {
  /** Where releases are. */
  url?: string;
  /** Lines in OpenSSH's format of allowed signers. */
  signers: string;
}

/** Replaced by `release/compile.ts` where the release is built with a key; nothing defines it otherwise. */
declare const RDCTL_PINNED_RELEASES: PinnedReleases;

export const PINNED: PinnedReleases =
  typeof RDCTL_PINNED_RELEASES === 'undefined' ? { signers: '' } : RDCTL_PINNED_RELEASES;
