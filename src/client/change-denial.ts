import type { KubeObject } from '../api/object.ts';
import { Problem, problemOf } from './problem.ts';
import { stateOf } from './request-state.ts';

/** A `NotClaimable` denial of `start`, with the state of the request; other errors stay. */
export function startProblem(error: unknown, request: KubeObject, program: string, target: string): unknown {
  const { exitCode, message } = problemOf(error);
  if (!message.includes('NotClaimable: ')) return error;
  const { state, why } = stateOf(request);
  return new Problem(
    exitCode,
    `${message.replace('spec.claimed: ', '')}. The request is ${state}${why === '' ? '' : `: ${why}`}; to see it: ${program} get ${target}`,
  );
}

/** With flags of the client in place of fields. */
export function extendProblem(error: unknown, program: string, target: string): Problem {
  const { exitCode, message } = problemOf(error);
  return new Problem(exitCode, extensionInFlags(message, program, target));
}

/** With flags and commands of the client in place of fields. */
export const extensionInFlags = (message: string, program: string, target: string): string =>
  message
    .replace(/\bspec\.extensions\[\d+\]\.by\b/g, '--by')
    .replace(/\bspec\.extensions: /g, '')
    .replace('status.extensions shows the decision', `this shows the decision: ${program} get ${target}`);
