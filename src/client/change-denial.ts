import type { KubeObject } from '../api/object.ts';
import { ApiError } from '../kube/errors.ts';
import { exits } from './command-spec.ts';
import { Problem, problemOf } from './problem.ts';
import { specOf, stateOf } from './request-state.ts';

/** The Problem for a `start` that was denied with `NotClaimable`; other errors stay. */
export function startProblem(error: unknown, request: KubeObject, program: string, target: string): unknown {
  if (!(error instanceof ApiError) || !error.message.includes('NotClaimable: ')) return error;
  const { name } = request.metadata;
  const { state, why } = stateOf(request);
  const denied = (text: string): Problem => new Problem(exits.denied, `denied: NotClaimable: ${text}`);
  const begun = state === 'Ready' ? 'has begun' : state === 'Opening' ? 'is opening' : undefined;
  if (begun)
    return denied(`the access of ${name} ${begun} already, without start; to see it: ${program} get ${target}`);
  const toWait = `to wait for access: ${program} watch ${target}`;
  if (error.message.includes('has no approvals.claimWithin'))
    return denied(`access through template ${specOf(request).templateName} begins by itself, without start; ${toWait}`);
  return denied(`${name} cannot start yet: its state is ${state}${why === '' ? '' : `: ${why}`}; ${toWait}`);
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
