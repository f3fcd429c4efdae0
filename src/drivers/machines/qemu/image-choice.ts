import type { GuestImage } from '../../../guest-images/image.ts';

/**
 * Pure: the image that a machine keeps, unless it lacks what the machine is to do and another has it; the newest where it has none. What
 * lasts is on a disk of its own, so that another image costs nothing but a boot.
 * @param known newest first. @param same that of the machine.
 */
export function chooseImage<Image extends Pick<GuestImage, 'features'>>(
  known: readonly Image[],
  same: Image | undefined,
  feature: string | undefined,
): Image | undefined {
  const present = same ?? known[0];
  if (feature === undefined || present?.features?.includes(feature)) return present;
  return known.find(({ features }) => features?.includes(feature)) ?? present;
}
