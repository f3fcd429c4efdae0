/** Values that the build of a release puts into the file. */
export interface PinnedReleases {
  /** Base URL of the releases. */
  url?: string;
  /** Lines in OpenSSH's format of allowed signers. */
  signers: string;
}

/** Replaced by `release/compile.ts` if the release is built with a key; undefined otherwise. */
declare const RDCTL_PINNED_RELEASES: PinnedReleases;

export const PINNED: PinnedReleases =
  typeof RDCTL_PINNED_RELEASES === 'undefined' ? { signers: '' } : RDCTL_PINNED_RELEASES;
