import { RdError } from '../src/errors.ts';
import type { Platform } from '../src/settings/field.ts';

/** Throws `ERR_USAGE` on an operating system that has no places and no drivers of ours. */
export function supportedPlatform(platform: NodeJS.Platform): Platform {
  if (platform === 'darwin' || platform === 'linux' || platform === 'win32') return platform;
  throw new RdError('ERR_USAGE', `rdctl does not know the operating system ${platform}`, {
    advice: 'It runs on Linux, macOS and Windows.',
  });
}
