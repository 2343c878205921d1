"""Help texts: every command has one, and every option states its default."""

import re

import program

COMMANDS = [["run"], ["sweep"], ["merge"], ["collective"], ["topology"], ["trace", "list"], ["trace", "show"],
            ["trace", "import"], ["trace", "export"], ["trace", "check"], ["record"], ["list"]]


class Help(program.Case):
    def test_overview_names_every_command(self):
        text = self.good("--help")
        self.assertEqual(text, self.good())
        for command in COMMANDS:
            self.assertRegex(text, rf"(?m)^  {command[0]} ")
        self.assertRegex(self.good("trace", "--help"), r"(?m)^  import ")
        self.assertRegex(self.good("trace", "--help"), r"(?m)^  export ")

    def test_version(self):
        self.assertRegex(self.good("--version"), r"^tandem \d+\.\d+\.\d+\n$")

    def test_every_option_states_its_default(self):
        for command in COMMANDS:
            text = self.good(*command, "--help")
            self.assertTrue(text.startswith("Usage: tandem " + " ".join(command)), text[:80])
            for option in re.split(r"(?m)^  (?=-)", text.split("\n\nA study file")[0])[1:]:
                self.assertIn("(default: ", re.sub(r"\s+", " ", option), command)
            self.assertEqual(text, self.good(*command, "-h"))

    def test_no_line_is_too_wide(self):
        for command in COMMANDS:
            for line in self.good(*command, "--help").splitlines():
                self.assertLessEqual(len(line), 120, line)

    def test_list(self):
        self.assertIn("topology", self.good("list"))
        self.assertIn("mesh-rail-cube", self.good("list", "topology"))
        self.assertIn("planes", self.good("list", "topology", "fat-tree"))
        plugins = self.good_json("list", "topology", "torus")
        self.assertEqual([plugin["name"] for plugin in plugins], ["torus"])
        self.assertIn("dims", [parameter["name"] for parameter in plugins[0]["parameters"]])
        self.assertTrue(self.good("list", "--format", "csv").startswith("kind,name,help,parameters\n"))


program.main()
