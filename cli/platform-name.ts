import { readFileSync } from 'node:fs';

/** The operating system as messages about a flag name it (cli facts, 6.2). */
export interface PlatformName {
  platform: NodeJS.Platform;
  text: string;
}

/** `readKernel` gives `/proc/version`; a Linux inside WSL names itself there. */
export function platformName(platform: NodeJS.Platform, readKernel: () => string = kernel): PlatformName {
  if (platform === 'darwin') return { platform, text: 'macOS' };
  if (platform === 'win32') return { platform, text: 'Windows' };
  if (platform !== 'linux') return { platform, text: platform };
  const inWsl = /^Linux version \S+-microsoft-standard-WSL2/.test(readKernel());
  return { platform, text: inWsl ? 'Linux in a WSL partition' : 'Linux' };
}

function kernel(): string {
  try {
    return readFileSync('/proc/version', 'utf8');
  } catch {
    // Not readable in some containers; then it is no WSL either.
    return '';
  }
}
