import type { KubeObject } from '../api/object.ts';
import { describe } from '../kit/errors.ts';
import type { Context } from './command.ts';
import { exits } from './command-spec.ts';
import { Problem } from './problem.ts';
import { stateOf } from './request-state.ts';
import type { Session } from './session.ts';

/**
 * Runs a command in the pod of a request by the user's kubectl, with the same connection flags. `command` default: `/bin/sh`. Resolves to
 * the exit code of kubectl, which is that of the command.
 */
export async function kubectlExec(
  { io, args }: Context,
  session: Session,
  request: KubeObject,
  command: readonly string[],
): Promise<number> {
  const container = args.text('container');
  const { pod } = stateOf(request);
  if (pod === '') throw new Problem(exits.failed, `${request.metadata.name} names no pod yet; run the command again`);
  const kubectlArgs = [
    'exec',
    '-i',
    ...(io.terminal.input && io.terminal.output ? ['-t'] : []),
    `--namespace=${request.metadata.namespace ?? session.namespace}`,
    ...session.kubectlFlags,
    ...(container === undefined ? [] : [`--container=${container}`]),
    // With this prefix, kubectl takes the name for no flag, whatever the object contains.
    `pod/${pod}`,
    '--',
    ...(command.length === 0 ? ['/bin/sh'] : command),
  ];
  try {
    return await io.run('kubectl', kubectlArgs);
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    const remedy = isMissing ? 'install it, or run elsewhere' : 'correct this, or run elsewhere';
    throw new Problem(
      exits.failed,
      `cannot run kubectl: ${describe(error)}; ${remedy}: kubectl ${kubectlArgs.join(' ')}`,
    );
  }
}
