/** The outcome of each test of one run, by name: `passed`, `failed`, or another state of ginkgo. */
export type Outcomes = ReadonlyMap<string, string>;

interface SpecReport {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly State: string;
}

/** Reads a JSON report of ginkgo. Tests that the run skipped are left out. */
export function outcomes(json: string): Outcomes {
  const suites = JSON.parse(json) as { readonly SpecReports: readonly SpecReport[] | null }[];
  const specs = suites.flatMap(({ SpecReports }) => SpecReports ?? []);
  const ran = specs.filter(
    ({ LeafNodeType, State }) => LeafNodeType === 'It' && !['skipped', 'pending'].includes(State),
  );
  return new Map(ran.map((spec) => [nameOf(spec), spec.State]));
}

const nameOf = ({ ContainerHierarchyTexts, LeafNodeText }: SpecReport): string =>
  [...(ContainerHierarchyTexts ?? []), LeafNodeText].join(' ').trim();

const passed = (run: Outcomes): string[] => [...run].filter(([, state]) => state === 'passed').map(([name]) => name);

/** What passes in `bare` and not in `run`, by name. */
export const broken = (bare: Outcomes, run: Outcomes): string[] =>
  passed(bare)
    .filter((name) => run.get(name) !== 'passed')
    .sort();

/** How many tests passed of those that pass in `bare`, such as `193 of 194`. */
export function share(bare: Outcomes, run: Outcomes): string {
  const all = passed(bare).length;
  return `${all - broken(bare, run).length} of ${all}`;
}
