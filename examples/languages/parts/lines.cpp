// A spout in C++: emits numbered lines, and emits a line again when its tree fails.
//
//     c++ -O2 -o lines lines.cpp
//
// A message is a JSON document and a line `end`. A spout needs two fields of what it gets, so this file has no JSON
// library; a real program would use one.
#include <fstream>
#include <iostream>
#include <queue>
#include <string>
#include <unistd.h>

static std::string read_message() {
    std::string message, line;
    while (std::getline(std::cin, line)) {
        if (line == "end") return message;
        message += line;
    }
    exit(0);  // the task has closed the channel
}

static void send(const std::string& message) { std::cout << message << "\nend\n" << std::flush; }

// The value of a field, without the quotes of a text.
static std::string field(const std::string& message, const std::string& name) {
    size_t start = message.find("\"" + name + "\":");
    if (start == std::string::npos) return "";
    start += name.size() + 3;
    if (message[start] == '"') return message.substr(start + 1, message.find('"', start + 1) - start - 1);
    return message.substr(start, message.find_first_of(",}", start) - start);
}

int main(int argc, char** argv) {
    const long last = argc > 1 ? std::stol(argv[1]) : 1000;
    const std::string setup = read_message(), pid = std::to_string(getpid());
    std::ofstream(field(setup, "pidDir") + "/" + pid);
    send("{\"pid\":" + pid + "}");
    std::queue<long> failed;
    long next = 0;
    for (;;) {
        const std::string message = read_message(), command = field(message, "command");
        if (command == "fail") failed.push(std::stol(field(message, "id")));
        if (command == "next") {
            long number = next;
            if (!failed.empty()) {
                number = failed.front();
                failed.pop();
            } else if (next < last) {
                ++next;
            } else {
                send("{\"command\":\"end\"}");  // no new tuple; failed ones are still asked for
                number = -1;
            }
            if (number >= 0) {
                const std::string text = "Word" + std::to_string(number % 7) + " WORD" + std::to_string(number % 5);
                send("{\"command\":\"emit\",\"need_task_ids\":false,\"id\":" + std::to_string(number) + ",\"tuple\":[\"" +
                     text + "\"," + std::to_string(number) + "]}");
            }
        }
        send("{\"command\":\"sync\"}");
    }
}
