import { RdError } from '../../../errors.ts';

/** Download addresses for releases of k3s; without a trailing slash. */
export interface K3sSources {
  /** The list of channels. */
  channels: string;
  /** Base URL with one directory per release. */
  releases: string;
}

const CHANNELS = 'https://update.k3s.io/v1-release/channels';
const RELEASES = 'https://github.com/k3s-io/k3s/releases/download';

/**
 * Reads `RDCTL_K3S_CHANNELS_URL` and `RDCTL_K3S_RELEASES_URL`; the defaults are the official sources of k3s.
 * @throws RdError `ERR_USAGE` for a value that is not an HTTP URL.
 */
export function k3sSources(env: Readonly<Record<string, string | undefined>>): K3sSources {
  return {
    channels: address(env, 'RDCTL_K3S_CHANNELS_URL', CHANNELS),
    releases: address(env, 'RDCTL_K3S_RELEASES_URL', RELEASES),
  };
}

function address(env: Readonly<Record<string, string | undefined>>, name: string, usual: string): string {
  const value = env[name];
  if (value === undefined || value === '') return usual;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  // The value may contain a password.
  if (!url || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    throw new RdError('ERR_USAGE', `${name} is not an http or https URL without a query`, {
      advice: `Correct it, or unset it to use ${usual}.`,
    });
  }
  return value.replace(/\/+$/, '');
}
