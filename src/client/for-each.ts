import type { KubeObject } from '../api/object.ts';
import { printable } from '../kit/printable.ts';
import { fullName } from './access-requests.ts';
import type { Context } from './command.ts';
import { exits } from './command-spec.ts';
import type { OutputForm } from './common-flags.ts';
import { Printer, printObject } from './output.ts';
import { problemOf } from './problem.ts';

export interface Outcome {
  /** What JSON, YAML, and `-o name` print. */
  readonly object: KubeObject;
  /** What the printed line names. Default: `object`. */
  readonly subject?: KubeObject;
  /** As the end of the printed line: `approved`. */
  readonly result: string;
}

/** Calls `act` for each item, also after failures. Resolves to the highest exit code. */
export async function forEach<T>(
  { io, signal }: Context,
  form: OutputForm,
  items: readonly T[],
  act: (item: T) => Promise<Outcome | undefined>,
): Promise<number> {
  let code: number = exits.done;
  const objects: KubeObject[] = [];
  for (const item of items) {
    signal.throwIfAborted();
    try {
      const outcome = await act(item);
      if (!outcome) continue;
      objects.push(outcome.object);
      // At once, because the next item may take long.
      if (form === 'table' || form === 'wide')
        io.print(`${printable(`${fullName(outcome.subject ?? outcome.object)} ${outcome.result}`)}\n`);
    } catch (error) {
      const { exitCode, message } = problemOf(error);
      io.printError(`${io.program}: ${message}\n`);
      code = Math.max(code, exitCode);
    }
  }
  const [only] = objects;
  if (items.length === 1 && only) printObject(io, form, only);
  else if (form !== 'table' && form !== 'wide') printAll(io, form, objects);
  return code;
}

function printAll(io: Context['io'], form: OutputForm, objects: readonly KubeObject[]): void {
  const printer = new Printer(io, form, { columns: [], object: (object: KubeObject) => object, name: fullName });
  printer.add(objects);
  printer.end();
}
