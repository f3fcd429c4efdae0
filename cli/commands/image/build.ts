import { isDeepStrictEqual } from 'node:util';
import {
  type Architecture,
  architectureNamed,
  guestArchitecture,
} from '../../../src/drivers/guest-images/architecture.ts';
import type { GuestImage } from '../../../src/drivers/guest-images/image.ts';
import { DEFAULT_SUITE, type Kernel, SUITE_NAMES, type Suite } from '../../../src/drivers/guest-images/recipe.ts';
import { RdError } from '../../../src/errors.ts';
import { defined } from '../../../src/json.ts';
import { noArguments } from '../../arguments/arguments.ts';
import { defineCommand, type Io } from '../../command.ts';
import { OUTPUT_FLAG } from '../../views/view.ts';
import { machineUse, mainVersions, ownImages, printImage, restartHint, shortDigest } from './record.ts';

const BUILD_FLAGS = {
  suite: { type: 'string', summary: 'Debian suite', values: SUITE_NAMES },
  kernel: { type: 'string', summary: 'Debian kernel', values: ['cloud', 'generic'] },
  mirror: { type: 'string', summary: 'Base URL of the Debian archive to install from', placeholder: 'URL' },
  'allow-expired': {
    type: 'boolean',
    summary: 'Accept an archive with an expired index, such as a snapshot of Debian',
  },
  output: OUTPUT_FLAG,
} as const;

function suiteOf(name: string | undefined): Suite | undefined {
  return SUITE_NAMES.find((each) => each === name);
}

function kernelOf(name: string | undefined): Kernel {
  return name === 'generic' ? 'generic' : 'cloud';
}

/** Returns the architecture of the flag, by default that of this computer. @throws RdError `ERR_USAGE` for an unsupported one. */
function architectureOf(name: string | undefined): Architecture {
  const architecture = name === undefined ? guestArchitecture(process.arch) : architectureNamed(name);
  if (architecture !== undefined) return architecture;
  throw new RdError('ERR_USAGE', `there are no machines for ${process.arch}, the architecture of this computer`, {
    advice: 'Add --arch amd64 or --arch arm64 to build an image for another computer.',
  });
}

/** Builds an image. @throws RdError `ERR_USAGE` on other systems than Linux and for an invalid mirror; otherwise the errors of `buildImage`. */
async function build(
  io: Io,
  flags: { mirror?: string; 'allow-expired'?: boolean },
  { architecture, suite, kernel }: { architecture: Architecture; suite: Suite; kernel: Kernel },
): Promise<GuestImage> {
  if (io.platform !== 'linux') {
    throw new RdError('ERR_USAGE', 'guest images can only be built on Linux', {
      advice:
        'Build the image on Linux, save it with `rdctl image save`, and download it here with `rdctl image fetch`.',
    });
  }
  const { mirror } = flags;
  if (mirror !== undefined && !/^(?:https?|file|copy):\/\/[!-~]+$/.test(mirror)) {
    throw new RdError('ERR_USAGE', `${JSON.stringify(mirror)} is not the URL of a Debian archive`, {
      advice: 'Give a base URL, for example http://deb.debian.org/debian.',
    });
  }
  const { buildImage } = await import('../../../src/drivers/guest-images/build.ts');
  const { run } = await import('../../../src/os/run.ts');
  return buildImage({
    asRoot: process.getuid?.() === 0,
    store: ownImages(io),
    run,
    ...defined({ mirror }),
    architecture,
    suite,
    kernel,
    allowExpired: flags['allow-expired'] === true,
    onPhase: (phase) => io.err(`${phase} …\n`),
    now: Date.now,
    signal: io.signal,
  });
}

export const imageBuild = defineCommand({
  name: 'image build',
  summary: 'Build a Debian guest image on this computer',
  usage: '',
  description: `Installs Debian 13 with docker, buildx, compose and containerd into a new image, which takes about two minutes.
Requires Linux with mmdebstrap, e2fsprogs and qemu-utils, and root or user namespaces (package uidmap). Existing images stay.
--suite sid has newer engines, and bookworm (Debian 12) older ones. The cloud kernel is small and starts fast; the generic one
has more drivers, such as 9p. --arch builds an image for another computer, which takes ten times as long and an emulator: packages
qemu-user-static, binfmt-support and arch-test. A machine boots the image at its next start only if it has no other: see \`rdctl image use\`.
-o json prints {digest, name, architecture, created, bytes, features, directory}.

  rdctl image build`,
  flags: {
    ...BUILD_FLAGS,
    arch: {
      type: 'string',
      summary: 'Architecture of the guest (default: of this computer)',
      values: ['amd64', 'arm64'],
    },
    suite: { ...BUILD_FLAGS.suite, summary: 'Debian suite (default trixie)' },
    kernel: { ...BUILD_FLAGS.kernel, summary: 'Debian kernel (default cloud)' },
  },
  classic: false,
  async run({ flags, args, io }) {
    noArguments(args, 'image build');
    const image = await build(io, flags, {
      architecture: architectureOf(flags.arch),
      suite: suiteOf(flags.suite) ?? DEFAULT_SUITE,
      kernel: kernelOf(flags.kernel),
    });
    printImage(io, image, flags.output);
    return 0;
  },
});

export const imageUpgrade = defineCommand({
  name: 'image upgrade',
  summary: 'Build a current guest image and boot it at the next start',
  usage: '',
  description: `Builds an image like \`rdctl image build\`, with the kernel of the image in use and Debian 13, or sid if that is in use, and
selects it for the next start of the machine. The data disk stays: images, containers, volumes. The old image stays too;
\`rdctl image use\` goes back to it. If all packages are current already, the image is not replaced.
-o json prints {digest, name, architecture, created, bytes, features, directory}.

  rdctl image upgrade`,
  flags: BUILD_FLAGS,
  classic: false,
  async run({ flags, args, io }) {
    noArguments(args, 'image upgrade');
    const store = ownImages(io);
    const images = await store.list();
    const use = await machineUse(io, images);
    const present = images.find((image) => use(image).next);
    const image = await build(io, flags, {
      architecture: architectureOf(undefined),
      suite: suiteOf(flags.suite) ?? (present?.source?.suite === 'sid' ? 'sid' : DEFAULT_SUITE),
      kernel: kernelOf(flags.kernel ?? (present?.features?.includes('9p') ? 'generic' : undefined)),
    });
    if (present && isDeepStrictEqual(present.source, image.source)) {
      await store.remove(image);
      io.err(`${shortDigest(present)} ${present.name} is current: nothing to upgrade.\n`);
      printImage(io, present, flags.output);
      return 0;
    }
    await store.select(image);
    if (present) {
      for (const line of upgradeLines(present, image)) io.err(`${line}\n`);
      io.err(`To go back, run \`rdctl image use ${shortDigest(present)}\`.\n`);
    }
    await restartHint(io, image);
    printImage(io, image, flags.output);
    return 0;
  },
});

/** Lists the changes of an upgrade in the main packages, one line each. */
function upgradeLines(from: GuestImage, to: GuestImage): string[] {
  const before = new Map(mainVersions(from).map(({ name, version }) => [name, version]));
  return mainVersions(to)
    .filter(({ name, version }) => before.get(name) !== version)
    .map(({ name, version }) => {
      const old = before.get(name);
      return old === undefined ? `  ${name} ${version}` : `  ${name} ${old} -> ${version}`;
    });
}
