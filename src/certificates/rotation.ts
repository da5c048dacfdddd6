import { type Material, newSignedPair, serves } from './material.ts';

/** What to do with a material once every configuration trusts its authorities. */
type Step =
  /** Write it to the Secret; `why` is for the log. */
  | { readonly kind: 'store'; readonly material: Material; readonly why: string }
  | { readonly kind: 'wait'; readonly delayMs: number };

/** What the next step of a rotation depends on, besides the material. */
interface RotationState {
  /** Names that the certificate must have. */
  readonly names: readonly string[];
  /** Epoch milliseconds. */
  readonly nowMs: number;
  /** For how long every webhook configuration has trusted the authorities, milliseconds, as the watch of this replica shows. */
  readonly trustedForMs: number;
}

/**
 * Milliseconds after which every API server and every other replica is expected to know a change that the watch of this replica showed.
 */
export const propagationMs = 10_000;
/**
 * Milliseconds after which every ready replica is expected to serve a new pair in the Secret. A replica replaces a silent watch within
 * 90 s. A replica without data of the API server for 90 s is not ready.
 */
export const loadMs = 5 * 60_000;

/** The next step for the stored material. The leader stores the result in the Secret, so that the next leader continues from there. */
export function nextStep(material: Material, { names, nowMs, trustedForMs }: RotationState): Step {
  const { next, previousAuthority, ...served } = material;
  if (next) {
    if (trustedForMs < propagationMs) return { kind: 'wait', delayMs: propagationMs - trustedForMs };
    const promoted = { ...next, previousAuthority: served.authority };
    return { kind: 'store', material: promoted, why: 'the new certificate is trusted; replicas serve it from now on' };
  }
  const dueAtMs = dueAt(material);
  if (nowMs >= dueAtMs) return renewal(material, names, nowMs, 'two thirds of its lifetime have passed');
  if (!serves(material, names)) return renewal(material, names, nowMs, `it does not cover ${names.join(', ')}`);
  if (previousAuthority === undefined) return { kind: 'wait', delayMs: dueAtMs - nowMs };
  if (trustedForMs < loadMs) return { kind: 'wait', delayMs: loadMs - trustedForMs };
  return { kind: 'store', material: served, why: 'every replica has had 5 minutes to load the new certificate' };
}

/** The material with a successor: the first step of every rotation. */
export const withNext = (material: Material, names: readonly string[], nowMs: number): Material => ({
  ...material,
  next: newSignedPair(names, nowMs),
});

function renewal(material: Material, names: readonly string[], nowMs: number, reason: string): Step {
  return {
    kind: 'store',
    material: withNext(material, names, nowMs),
    why: `the certificate needs a successor: ${reason}`,
  };
}

function dueAt({ pair: { startsAtMs, expiresAtMs } }: Material): number {
  return Math.floor(startsAtMs + (2 / 3) * (expiresAtMs - startsAtMs));
}
