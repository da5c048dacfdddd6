// One rotation, each step a write of the Secret once all configurations trust its authorities:
//
//   served ── two thirds of its life, or other names ──> served + next
//     ^                                                       │ trusted for 10 s
//     └── previous authority dropped <── trusted for 5 min ── next is served

import { type Material, newSignedPair, serves } from './material.ts';

/** What to do with a material once every configuration trusts its authorities. */
type Step =
  /** `why` is for the log. */
  | { readonly kind: 'store'; readonly material: Material; readonly why: string }
  | { readonly kind: 'wait'; readonly delayMs: number };

interface RotationState {
  /** Names that the certificate must have. */
  readonly names: readonly string[];
  readonly nowMs: number;
  /** How long every configuration has trusted the authorities, as this replica's watch shows. */
  readonly trustedForMs: number;
}

/** After that, every API server and replica is expected to know a change. */
export const propagationMs = 10_000;
/** After that, every ready replica should serve a new pair, which it sees within 90 s. */
export const loadMs = 5 * 60_000;

/** In the Secret, so that the next leader continues from there. */
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

/** The first step of every rotation. */
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
