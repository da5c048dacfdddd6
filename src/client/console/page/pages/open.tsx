export function Open() {
  return <h1>Open</h1>;
}
