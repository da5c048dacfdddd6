import { readCast } from '../cast.ts';
import { inNamespace } from '../cluster-connection.ts';
import { checkName, lostView, openLog } from '../commands/sessions.ts';
import { Problem } from '../problem.ts';
import { type Call, nameIn, Refusal } from './call.ts';
import type { Failure } from './wire.ts';

/**
 * The asciicast of an open session, or of a recording, as it arrives. What goes wrong later is its
 * last line, a `Failure`: the lines before it can be shown.
 */
export async function cast({ query, connection, signal, write, line }: Call): Promise<void> {
  const from = query.get('from');
  const [namespace = '', name = ''] = ['namespace', 'name'].map((field) => nameIn(query, field));
  if (from !== 'sessions' && from !== 'recordings') throw new Refusal(400, 'from is neither sessions nor recordings');
  checkName(name);
  const own = inNamespace(connection, namespace);
  const chunks = await openLog(own, from, name, signal);
  let hasBegun = false;
  try {
    for await (const { line: text } of readCast(chunks)) {
      await write(Buffer.from(`${text}\n`));
      hasBegun = true;
    }
  } catch (error) {
    const problem = from === 'sessions' ? lostView(error, own, name) : error;
    if (!hasBegun || !(problem instanceof Problem)) throw problem;
    await line({ message: problem.message } satisfies Failure);
  }
}
